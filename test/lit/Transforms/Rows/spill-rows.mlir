// If a loop carries a long row, or a branch yields one, a buffer holds the row. The plan says which rows are long.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid,mlafix-spill-rows))" | FileCheck %s
// RUN: sed 's/, row_loops = yes//' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid,mlafix-spill-rows))" | FileCheck %s --check-prefix=SHORT
// SHORT-NOT: memref.alloca

!rows = memref<?x64xf32, strided<[?, 1], offset: ?>>
!tile = tensor<64xf32, #mlafix.dim<64>>
module attributes {mlafix.target = "x86-64-v3"} {
  // CHECK-LABEL: mlafix.kernel @running
  mlafix.kernel @running(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}, %k: index, %p: i1)
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 1, packs = 4, pack = 16, rows = 1>, row_loops = yes>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !rows
    // CHECK-DAG: %[[SUM:.*]] = memref.alloca() : memref<64xf32>
    // CHECK-DAG: %[[BRANCH:.*]] = memref.alloca() : memref<64xf32>
    // CHECK: scf.for %{{.*}} = %begin to %end
    mlafix.forall (%t) in (%n) {
      %v = mlafix.load %x[%t] : !rows -> !tile
      // CHECK: mlafix.store %{{.*}}, %[[A:.*]][] : tensor<64xf32, #mlafix.dim<64>>, memref<64xf32>
      // CHECK: scf.for %{{.*}} = %c0 to %k step %c1 {
      // CHECK-NEXT: %[[OLD:.*]] = mlafix.load %[[A]][] : memref<64xf32> -> tensor<64xf32, #mlafix.dim<64>>
      // CHECK-NEXT: %[[NEW:.*]] = arith.addf %[[OLD]], %[[OLD]]
      // CHECK-NEXT: mlafix.store %[[NEW]], %[[A]][]
      // CHECK-NEXT: }
      %sum = scf.for %i = %c0 to %k step %c1 iter_args(%acc = %v) -> (!tile) {
        %next = arith.addf %acc, %acc : !tile
        scf.yield %next : !tile
      }
      // CHECK: scf.if %p {
      // CHECK: mlafix.store %{{.*}}, %[[B:.*]][]
      // CHECK: } else {
      // CHECK: mlafix.store %{{.*}}, %[[B]][]
      // CHECK: mlafix.load %[[B]][]
      %r = scf.if %p -> (!tile) {
        %twice = arith.mulf %sum, %sum : !tile
        scf.yield %twice : !tile
      } else {
        scf.yield %sum : !tile
      }
      mlafix.store %r, %x[%t] : !tile, !rows
    }
  }
}
