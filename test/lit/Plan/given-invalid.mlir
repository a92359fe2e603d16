// A wrong field of a plan that a user gives is an error, and nothing is compiled.
// RUN: not %mlafix-opt %s --target=sm_90 --emit=layout --mlafix-plan=threads=4 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: error: expected a field of a plan as NAME=VALUE or VERSION.NAME=VALUE, with a name out of lanes, rows, parts, least_threads, {{.*}}, got 'threads=4'
// RUN: not %mlafix-opt %s --target=sm_90 --emit=layout --mlafix-plan=block=bytes 2>&1 | FileCheck %s --check-prefix=REASON
// REASON: error: expected a field of a plan {{.*}}, got 'block=bytes'
// RUN: not %mlafix-opt %s --target=sm_90 --emit=layout --mlafix-plan=resident=many 2>&1 | FileCheck %s --check-prefix=VALUE
// VALUE: error: expected 'resident' to be fit, any or an integer from 1 to 32, got 'many'
// RUN: not %mlafix-opt %s --target=sm_90 --emit=layout --mlafix-plan=dens.lanes=8 2>&1 | FileCheck %s --check-prefix=VERSION
// VERSION: error: expected a plan for one of the code versions of 'copy' (dense, place, fast, any), got 'dens'
// RUN: not %mlafix-opt %s --target=sm_90 --emit=layout --mlafix-plan=lanes=64 2>&1 | FileCheck %s --check-prefix=LAYOUT
// LAYOUT: error: expected one row in a block whose rows cross warps, got rows = 16
// RUN: not %mlafix-opt %s --target=sm_90 --emit=layout --mlafix-plan=least_threads=96 2>&1 | FileCheck %s --check-prefix=HALVED
// HALVED: error: expected 'least_threads' to be the 256 threads of a block divided by a power of two, and a multiple of 32 and of the 16 lanes of a row, got 96
// RUN: not %mlafix-opt %s --target=sm_90 --emit=layout --mlafix-plan=resident=16 2>&1 | FileCheck %s --check-prefix=RESIDENT
// RESIDENT: error: expected 'resident' to be at most 8, since a multiprocessor holds 2048 threads and a block has 256, got 16
// RUN: not %mlafix-opt %s --target=sm_90 --emit=layout --mlafix-plan=rows_ahead=132 2>&1 | FileCheck %s --check-prefix=AHEAD
// AHEAD: error: expected 'rows_ahead' to be 0 unless each block reduces one row over several warps, in order, got 132
// RUN: not %mlafix-opt %s --target=sm_90 --emit=layout --mlafix-plan=row_bundle=3 2>&1 | FileCheck %s --check-prefix=POWER
// POWER: error: expected 'row_bundle' to be a power of two, got 3
// RUN: not %mlafix-opt %s --target=sm_80 --emit=layout --mlafix-plan=dependent_launch=yes 2>&1 | FileCheck %s --check-prefix=LAUNCH
// LAUNCH: error: expected 'dependent_launch' to be no for a target that has no such launches, got yes
// RUN: not %mlafix-opt %s --target=x86-64 --emit=layout --mlafix-plan=resident=2 2>&1 | FileCheck %s --check-prefix=CPU
// CPU: error: expected no fields of a plan for a target that is not a GPU, got some for x86-64
!rows = memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>>
!tile = tensor<128xf32, #mlafix.dim<128>>
mlafix.kernel @copy(%out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
                    %x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t, %h) in (%n, %c16) {
    %v = mlafix.load %x[%t, %h] : !rows -> !tile
    mlafix.store %v, %out[%t, %h] : !tile, !rows
  }
}
