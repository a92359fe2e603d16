// A user can give fields of plans, with an option of the pass or of mlafix-opt, or an attribute of the kernel.
// RUN: %mlafix-opt %s --target=sm_90 --emit=layout --mlafix-plan=resident=6,dense.lanes=8,dense.rows=32 | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90 plan=resident=6,dense.lanes=8,dense.rows=32})" | FileCheck %s
// RUN: sed 's/attributes {}/attributes {mlafix.given_plan = ["resident=6", "dense.lanes=8", "dense.rows=32"]}/' %s | %mlafix-opt --target=sm_90 --emit=layout | FileCheck %s
// RUN: sed 's/attributes {}/attributes {mlafix.given_plan = ["resident=6"]}/' %s | %mlafix-opt --target=x86-64 --emit=layout | FileCheck %s --check-prefix=CPU

// With half of the lanes, a lane has twice as many packs, and 32 bits can number the lanes of twice as many rows.
// CHECK-LABEL: @copy_dense
// CHECK-SAME: #mlafix.guard<max_rows, value = 268435455>
// CHECK-SAME: layout = <lanes = 8, packs = 2, pack = 8, rows = 32>
// CHECK-SAME: resident = 6
// CHECK-LABEL: @copy_fast
// CHECK-SAME: layout = <lanes = 16, packs = 1, pack = 8, rows = 16>
// CHECK-SAME: resident = 6
// CHECK-LABEL: @copy_any
// CHECK-NOT: resident = 6
// CPU-NOT: {{resident|given_plan}}
!rows = memref<?x16x128xbf16, strided<[?, ?, 1], offset: ?>>
!tile = tensor<128xf32, #mlafix.dim<128>>
mlafix.kernel @copy(%out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
                    %x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"}) attributes {} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t, %h) in (%n, %c16) {
    %v = mlafix.load %x[%t, %h] : !rows -> !tile
    mlafix.store %v, %out[%t, %h] : !tile, !rows
  }
}
