// In a loop over packs, a swap of blocks larger than a pack (here 16 elements) reads a buffer that an earlier loop has
// filled.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid,mlafix-loop-over-packs))" | FileCheck %s

!rows = memref<?x128xf32, strided<[?, 1], offset: ?>>
!tile = tensor<128xf32, #mlafix.dim<128>>
module attributes {mlafix.target = "x86-64-v3"} {
  // CHECK-LABEL: mlafix.kernel @swap
  mlafix.kernel @swap(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 1, packs = 8, pack = 16, rows = 1>, row_loops = yes>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    // CHECK: %[[KEPT:.*]] = memref.alloca() : memref<128xf32>
    // CHECK: scf.for %{{.*}} = %begin to %end
    mlafix.forall (%t) in (%n) {
      // CHECK: scf.for %[[I:[a-z0-9]+]] =
      // CHECK: %[[V:.*]] = vector.load %x
      // CHECK: %[[S:.*]] = vector.shuffle %[[V]]
      // CHECK: vector.store %[[S]], %[[KEPT]][%[[I]]]
      %v = mlafix.load %x[%t] : !rows -> !tile
      %near = mlafix.swap %v by 8 : !tile
      // CHECK: scf.for %[[J:[a-z0-9]+]] =
      // CHECK: %[[OTHER:[0-9]+]] = arith.xori %[[J]], %c32
      // CHECK: vector.load %[[KEPT]][%[[OTHER]]]
      %far = mlafix.swap %near by 32 : !tile
      mlafix.store %far, %x[%t] : !tile, !rows
    }
  }
}
