// Lanes hold two packs of a row if a loop computes much on each row that it loads, and the rows fit into registers. Such a
// kernel has a version of one pack per lane for few rows: at most 49152 threads of 8 lanes a row.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-unroll-loops{target=sm_90}),canonicalize,mlafix-plan-kernel{target=sm_90 machine=sharedOperations=1})" | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-unroll-loops{target=sm_90}),canonicalize,mlafix-plan-kernel{target=sm_90})" | FileCheck %s --check-prefix=ONE
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-unroll-loops{target=sm_90}),canonicalize,mlafix-plan-kernel{target=sm_90 machine=sharedOperations=1,sharedRegisters=95})" | FileCheck %s --check-prefix=ONE

// Rows of fp8 keep one pack, as do rows beside which a lane computes a tanh.
// RUN: sed 's/xbf16/xf8E4M3FN/g' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix.kernel(mlafix-unroll-loops{target=sm_90}),canonicalize,mlafix-plan-kernel{target=sm_90 machine=sharedOperations=1})" | FileCheck %s --check-prefix=FP8
// RUN: sed 's/%%same = mlafix.splat %%weight/%%tanh = math.tanh %%weight : f32 %%same = mlafix.splat %%tanh/' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix.kernel(mlafix-unroll-loops{target=sm_90}),canonicalize,mlafix-plan-kernel{target=sm_90 machine=sharedOperations=1})" | FileCheck %s --check-prefix=ONE
// A given field does not lift the bound.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-unroll-loops{target=sm_90}),canonicalize,mlafix-plan-kernel{target=sm_90 machine=sharedOperations=1 plan=dense.least_threads=128})" | FileCheck %s
// Rows whose two packs would be in local memory keep one pack.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-unroll-loops{target=sm_90}),canonicalize,mlafix-plan-kernel{target=sm_90 machine=sharedOperations=1,unrolledInstructions=1})" | FileCheck %s --check-prefix=ONE

// CHECK: mlafix.kernel @decode_dense_few(
// CHECK-SAME: <max_rows, value = 6144>
// CHECK-SAME: <lanes = 8, packs = 1, pack = 8, rows = 16>
// CHECK: mlafix.kernel @decode_dense(
// CHECK-SAME: <max_rows, value = 536870911>
// CHECK-SAME: <lanes = 4, packs = 2, pack = 8, rows = 32>
// CHECK: mlafix.kernel @decode_fast(
// CHECK-SAME: <lanes = 8, packs = 1, pack = 8, rows = 16>
// FP8-NOT: dense_few
// FP8: mlafix.kernel @decode_dense(
// ONE-NOT: dense_few
// ONE: mlafix.kernel @decode_dense(
// ONE-SAME: <lanes = 8, packs = 1, pack = 8, rows = 16>

// A loop of unknown length that reduces rows hides latency by loading the rows of eight iterations at once, or of four
// if it keeps many rows. The plan of such a kernel does not say how many blocks a multiprocessor must hold
// (`resident`), since that would limit the registers of a thread. The plan of a loop that reduces nothing does.
// RUN: %mlafix-opt %s --target=sm_90 --emit=layout | FileCheck %s --check-prefix=RESIDENT
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-unroll-loops{target=sm_90}),canonicalize)" | FileCheck %s --check-prefix=EIGHT
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-unroll-loops{target=sm_90 machine=crowdedRows=2}),canonicalize)" | FileCheck %s --check-prefix=FOUR
// RUN: sed '/weight/d; s/same : !tile/product : !tile/' %s | %mlafix-opt --target=sm_90 --emit=layout | FileCheck %s --check-prefix=FIT

// RESIDENT-LABEL: @decode_dense
// RESIDENT-NOT: resident
// FIT-LABEL: @decode_dense
// FIT-SAME: resident = fit
// EIGHT: scf.for %{{.*}} step %c8
// FOUR: scf.for %{{.*}} step %c4
!rows = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!keys = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>
!tile = tensor<64xf32, #mlafix.dim<64>>
mlafix.kernel @decode(
    %out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %q: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
    %keys: !keys {mlafix.dims = ["n", "m", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %q, %c0 : !rows
  %m = memref.dim %keys, %c1 : !keys
  mlafix.forall (%t) in (%n) {
    %query = mlafix.load %q[%t] : !rows -> !tile
    %sum = scf.for %i = %c0 to %m step %c1 iter_args(%sum = %query) -> !tile {
      %key = mlafix.load %keys[%t, %i] : !keys -> !tile
      %product = arith.mulf %key, %query : !tile
      %weight = mlafix.reduce add %product : !tile
      %same = mlafix.splat %weight : f32 -> !tile
      %next = arith.addf %sum, %same : !tile
      scf.yield %next : !tile
    }
    mlafix.store %sum, %out[%t] : !tile, !rows
  }
}
