// A scan folds to its operand if the row, or each group, has one element. A running maximum or minimum also folds to
// its operand if all elements are equal. So does a running maximum of a running maximum in the same groups.
// RUN: %mlafix-opt %s --canonicalize | FileCheck %s

!rows = memref<?x12xf32, strided<[?, 1], offset: ?>>
!ones = memref<?x1xf32, strided<[?, 1], offset: ?>>
!one = tensor<1xf32, #mlafix.dim<1>>
!tile = tensor<12xf32, #mlafix.dim<12 x 1>>
!product = tensor<12xf32, #mlafix.dim<4 x 3>>

// CHECK-LABEL: mlafix.kernel @k(
mlafix.kernel @k(
    %x: !rows {mlafix.dims = ["n", "(12 1)"], mlafix.access = "update"}, %y: !rows {mlafix.dims = ["n", "(4 3)"], mlafix.access = "update"},
    %z: !ones {mlafix.dims = ["n", "1"], mlafix.access = "update"}, %s: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // CHECK: %[[Z:.*]] = mlafix.load %z
    %z0 = mlafix.load %z[%t] : !ones -> !one
    %z1 = mlafix.scan add %z0 : !one
    // CHECK-NEXT: mlafix.store %[[Z]], %z
    mlafix.store %z1, %z[%t] : !one, !ones
    // CHECK: %[[X:.*]] = mlafix.load %x
    %x0 = mlafix.load %x[%t] : !rows -> !tile
    // CHECK-NEXT: %[[SUMS:.*]] = mlafix.scan add %[[X]] : tensor
    %x1 = mlafix.scan add %x0 in_groups : !tile
    %x2 = mlafix.scan add %x1 : !tile
    // CHECK-NEXT: mlafix.store %[[SUMS]], %x
    mlafix.store %x2, %x[%t] : !tile, !rows
    // CHECK: %[[Y:.*]] = mlafix.load %y
    %y0 = mlafix.load %y[%t] : !rows -> !product
    // CHECK-NEXT: %[[MOST:.*]] = mlafix.scan max %[[Y]] in_groups
    %y1 = mlafix.scan max %y0 in_groups : !product
    %y2 = mlafix.scan max %y1 in_groups : !product
    // CHECK-NEXT: mlafix.store %[[MOST]], %y
    mlafix.store %y2, %y[%t] : !product, !rows
    // CHECK-NEXT: %[[ALL:.*]] = mlafix.scan max %[[MOST]] :
    %y3 = mlafix.scan max %y2 : !product
    // CHECK-NEXT: %[[LEAST:.*]] = mlafix.scan min %[[ALL]] :
    %y4 = mlafix.scan min %y3 : !product
    // CHECK-NEXT: mlafix.store %[[LEAST]], %y
    mlafix.store %y4, %y[%t] : !product, !rows
    // CHECK-NEXT: %[[SPLAT:.*]] = mlafix.splat
    %v0 = mlafix.splat %s : f32 -> !product
    %v1 = mlafix.scan max %v0 : !product
    // CHECK-NEXT: mlafix.store %[[SPLAT]], %y
    mlafix.store %v1, %y[%t] : !product, !rows
    // CHECK-NEXT: mlafix.scan add %[[SPLAT]]
    %v2 = mlafix.scan add %v0 : !product
    mlafix.store %v2, %y[%t] : !product, !rows
    // CHECK-NOT: mlafix.scan
    %k0 = arith.constant dense<2.0> : !product
    %k1 = mlafix.scan min %k0 : !product
    mlafix.store %k1, %y[%t] : !product, !rows
  }
}
