// Lanes of a row wait for each other if one could overtake another: between a row's store and a scalar load of the same
// row, and at a loop's back edge. Accesses to whole rows need no wait, since a lane only accesses its own elements.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_80},mlafix.kernel(mlafix-distribute),canonicalize,cse)" | FileCheck %s

!rows = memref<?x128xf32, strided<[?, 1], offset: ?>>
!tile = tensor<128xf32, #mlafix.dim<128>>

// CHECK-LABEL: @back_edge_fast
mlafix.kernel @back_edge(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"},
                         %y: memref<?xbf16, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %z = arith.constant 0.0 : f32
    // CHECK: scf.for
    %s = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %z) -> f32 {
      // CHECK: vector.store
      // CHECK-NEXT: nvvm.bar.warp.sync
      // CHECK-NEXT: memref.load
      // CHECK: nvvm.bar.warp.sync
      // CHECK-NEXT: scf.yield
      %tile = mlafix.splat %a : f32 -> !tile
      mlafix.store %tile, %x[%t] : !tile, !rows
      %v = mlafix.load %x[%t, %i] : !rows -> f32
      scf.yield %v : f32
    }
    mlafix.store %s, %y[%t] : f32, memref<?xbf16, strided<[1], offset: ?>>
  }
}

// CHECK-LABEL: @rows_alone_fast
// CHECK-NOT: nvvm.bar
mlafix.kernel @rows_alone(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %w = arith.addf %v, %v : !tile
    mlafix.store %w, %x[%t] : !tile, !rows
    %u = mlafix.load %x[%t] : !rows -> !tile
    mlafix.store %u, %x[%t] : !tile, !rows
  }
}
