// A CPU kernel processes the rows [begin, end) of a dense grid, or the rows of the selected segments of a ragged grid.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid))" | FileCheck %s

!rows = memref<?x16x32xf32, strided<[?, ?, 1], offset: ?>>
!ints = memref<?xi32, strided<[1], offset: ?>>
!tile = tensor<32xf32, #mlafix.dim<32>>
module attributes {mlafix.target = "x86-64-v3"} {
  // CHECK-LABEL: mlafix.kernel @dense
  // CHECK-SAME: %begin: index, %end: index
  // CHECK-SAME: geometry = #mlafix.cpu<[<arg = 0, dim = 0>, <value = 16>], rows_per_block = 1>
  mlafix.kernel @dense(%x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "update"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 1, packs = 2, pack = 16, rows = 1>>} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %n = memref.dim %x, %c0 : !rows
    // CHECK: scf.for %[[ROW:.*]] = %begin to %end
    // CHECK-NEXT: %[[H:.*]] = arith.remui %[[ROW]], %c16
    // CHECK-NEXT: %[[T:.*]] = arith.divui %[[ROW]], %c16
    // CHECK-NEXT: mlafix.load %x[%[[T]], %[[H]]]
    mlafix.forall (%t, %h) in (%n, %c16) {
      %v = mlafix.load %x[%t, %h] : !rows -> !tile
      mlafix.store %v, %x[%t, %h] : !tile, !rows
    }
  }

  // CHECK-LABEL: mlafix.kernel @ragged
  // CHECK-SAME: geometry = #mlafix.cpu<ragged [<arg = 0, dim = 0>, <value = 16>], rows_per_block = 1>
  mlafix.kernel @ragged(%x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "update"},
                        %starts: !ints {mlafix.dims = ["b1"], mlafix.access = "read"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 1, packs = 2, pack = 16, rows = 1>>} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %n = memref.dim %x, %c0 : !rows
    // CHECK: scf.for %[[SEG:.*]] = %c0
    // CHECK: %[[FROM:.*]] = arith.maxsi %{{.*}}, %begin
    // CHECK: arith.minsi %{{.*}}, %end
    // CHECK: scf.for %[[ROW:.*]] = %[[FROM]]
    // CHECK: scf.for %[[H:.*]] = %{{.*}} to %c16
    // CHECK: mlafix.store %{{.*}}, %x[%[[ROW]], %[[H]]]
    mlafix.ragged_forall (%b, %t, %h) in (%starts, %n, %c16) : !ints where {
      %yes = arith.constant true
      mlafix.yield %yes : i1
    } do {
      %zeros = arith.constant dense<0.0> : !tile
      mlafix.store %zeros, %x[%t, %h] : !tile, !rows
    }
  }
}
