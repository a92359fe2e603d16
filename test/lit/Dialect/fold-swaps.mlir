// A swap of equal elements folds to the row. Two swaps with equal block sizes cancel; other pairs do not.
// RUN: %mlafix-opt %s --canonicalize | FileCheck %s

!rows = memref<?x16xf32, strided<[?, 1], offset: ?>>
!tile = tensor<16xf32, #mlafix.dim<16>>

// CHECK-LABEL: mlafix.kernel @k(
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "16"], mlafix.access = "update"}, %y: !rows {mlafix.dims = ["n", "16"], mlafix.access = "update"},
                 %z: !rows {mlafix.dims = ["n", "16"], mlafix.access = "update"}, %s: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // CHECK: %[[X:.*]] = mlafix.load %x
    // CHECK-NEXT: mlafix.store %[[X]], %x
    %x0 = mlafix.load %x[%t] : !rows -> !tile
    %x1 = mlafix.swap %x0 by 4 : !tile
    %x2 = mlafix.swap %x1 by 4 : !tile
    mlafix.store %x2, %x[%t] : !tile, !rows
    // CHECK: %[[S:.*]] = mlafix.splat %s
    // CHECK-NEXT: mlafix.store %[[S]], %y
    %y0 = mlafix.splat %s : f32 -> !tile
    %y1 = mlafix.swap %y0 by 1 : !tile
    mlafix.store %y1, %y[%t] : !tile, !rows
    // CHECK: mlafix.swap %{{.*}} by 4
    // CHECK-NEXT: mlafix.swap %{{.*}} by 2
    %z0 = mlafix.load %z[%t] : !rows -> !tile
    %z1 = mlafix.swap %z0 by 4 : !tile
    %z2 = mlafix.swap %z1 by 2 : !tile
    mlafix.store %z2, %z[%t] : !tile, !rows
  }
}
