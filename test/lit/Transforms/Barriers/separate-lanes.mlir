// The lanes of a row wait for each other between a row's store and a scalar load of the same row, and at a loop's back
// edge. Lanes of one warp wait with a mask, lanes of several warps at a block barrier. Accesses to whole rows need no
// wait.
// RUN: %mlafix-opt %s --split-input-file --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid,mlafix-separate-lanes))" | FileCheck %s

!rows = memref<?x128xf32, strided<[?, 1], offset: ?>>
!tile = tensor<128xf32, #mlafix.dim<128>>
module attributes {mlafix.target = "sm_80"} {
  // CHECK-LABEL: @back_edge
  mlafix.kernel @back_edge(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 16, packs = 2, pack = 4, rows = 8>>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %n = memref.dim %x, %c0 : !rows
    // CHECK: mlafix_thread.row lane %{{.*}} mask %[[MASK:.*]] {
    mlafix.forall (%t) in (%n) {
      %z = arith.constant 0.0 : f32
      // CHECK: scf.for
      %s = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %z) -> f32 {
        %tile = mlafix.splat %a : f32 -> !tile
        // CHECK: mlafix.store
        // CHECK-NEXT: nvvm.bar.warp.sync %[[MASK]]
        // CHECK-NEXT: mlafix.load
        // CHECK-NEXT: nvvm.bar.warp.sync %[[MASK]]
        // CHECK-NEXT: scf.yield
        mlafix.store %tile, %x[%t] : !tile, !rows
        %v = mlafix.load %x[%t, %i] : !rows -> f32
        scf.yield %v : f32
      }
    }
  }

  // Only one path of the branch waits after the store, so the load after the branch needs a wait, too.
  // CHECK-LABEL: @branches
  // CHECK: mlafix.store
  // CHECK-NEXT: scf.if
  // CHECK-NEXT: nvvm.bar.warp.sync
  // CHECK-NEXT: mlafix.load
  // CHECK: } else {
  // CHECK-NOT: nvvm.bar
  // CHECK: }
  // CHECK: nvvm.bar.warp.sync
  // CHECK-NEXT: mlafix.load
  // CHECK-NOT: nvvm.bar
  mlafix.kernel @branches(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}, %p: i1)
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 16, packs = 2, pack = 4, rows = 8>>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      %ones = arith.constant dense<1.0> : !tile
      %z = arith.constant 0.0 : f32
      mlafix.store %ones, %x[%t] : !tile, !rows
      %a = scf.if %p -> f32 {
        %v = mlafix.load %x[%t, %c0] : !rows -> f32
        scf.yield %v : f32
      } else {
        scf.yield %z : f32
      }
      %b = mlafix.load %x[%t, %c1] : !rows -> f32
      %s = arith.addf %a, %b : f32
    }
  }

  // The store after the inner loop conflicts with the load in the inner loop, in the same and in the next iteration of
  // the outer loop. So lanes wait before and after the store.
  // CHECK-LABEL: @nested_loops
  // CHECK: scf.for
  // CHECK: scf.for
  // CHECK-NOT: nvvm.bar
  // CHECK: mlafix.load
  // CHECK: }
  // CHECK: nvvm.bar.warp.sync
  // CHECK-NEXT: mlafix.store
  // CHECK-NEXT: nvvm.bar.warp.sync
  // CHECK-NEXT: scf.yield
  mlafix.kernel @nested_loops(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 16, packs = 2, pack = 4, rows = 8>>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      %z = arith.constant 0.0 : f32
      %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %z) -> f32 {
        %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%b = %a) -> f32 {
          %v = mlafix.load %x[%t, %j] : !rows -> f32
          %w = arith.addf %b, %v : f32
          scf.yield %w : f32
        }
        %tile = mlafix.splat %s : f32 -> !tile
        mlafix.store %tile, %x[%t] : !tile, !rows
        scf.yield %s : f32
      }
    }
  }

  // CHECK-LABEL: @rows_alone
  // CHECK-NOT: nvvm.bar
  mlafix.kernel @rows_alone(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 16, packs = 2, pack = 4, rows = 8>>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      %v = mlafix.load %x[%t] : !rows -> !tile
      mlafix.store %v, %x[%t] : !tile, !rows
      %u = mlafix.load %x[%t] : !rows -> !tile
      mlafix.store %u, %x[%t] : !tile, !rows
    }
  }
}

// -----

!rows = memref<?x2048xf32, strided<[?, 1], offset: ?>>
!tile = tensor<2048xf32, #mlafix.dim<2048>>
module attributes {mlafix.target = "sm_80"} {
  // CHECK-LABEL: @warps
  // CHECK: mlafix.store
  // CHECK-NEXT: nvvm.barrier
  // CHECK-NEXT: mlafix.load
  mlafix.kernel @warps(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}, %y: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 256, packs = 2, pack = 4, rows = 1>>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      %ones = arith.constant dense<1.0> : !tile
      mlafix.store %ones, %x[%t] : !tile, !rows
      %v = mlafix.load %x[%t, %c0] : !rows -> f32
      mlafix.store %v, %y[%t] : f32, memref<?xf32, strided<[1], offset: ?>>
    }
  }
}

// -----

!rows = memref<?x128xf32, strided<[?, 1], offset: ?>>
!whole = tensor<128xf32, #mlafix.dim<2 x 64>>
!group = tensor<64xf32, #mlafix.dim<64>>
!member = tensor<2xf32, #mlafix.dim<2>>
module attributes {mlafix.target = "sm_80"} {
  // All groups are distributed over lanes in the same way. The whole row, members and elements are each distributed
  // differently, so lanes wait between accesses of two of these kinds.
  // CHECK-LABEL: @parts
  // CHECK: mlafix.store %{{.*}} group
  // CHECK-NEXT: mlafix.load %{{.*}} group
  // CHECK-NEXT: nvvm.bar.warp.sync
  // CHECK-NEXT: mlafix.load %{{.*}} member
  // CHECK-NEXT: mlafix.store %{{.*}} member
  // CHECK-NEXT: nvvm.bar.warp.sync
  // CHECK-NEXT: mlafix.load %x[%{{[a-z0-9]*}}] :
  // CHECK-NEXT: mlafix.store %{{.*}}, %x[%{{[a-z0-9]*}}] :
  // CHECK-NEXT: nvvm.bar.warp.sync
  // CHECK-NEXT: mlafix.load %{{.*}} group %{{.*}} member
  mlafix.kernel @parts(%x: !rows {mlafix.dims = ["n", "(2 64)"], mlafix.access = "update"}, %y: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 16, packs = 2, pack = 4, rows = 8>>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      %a = mlafix.load %x[%t] group %c0 : !rows -> !group
      mlafix.store %a, %x[%t] group %c1 : !group, !rows
      %b = mlafix.load %x[%t] group %c1 : !rows -> !group
      %m = mlafix.load %x[%t] member %c0 : !rows -> !member
      mlafix.store %m, %x[%t] member %c1 : !member, !rows
      %v = mlafix.load %x[%t] : !rows -> !whole
      mlafix.store %v, %x[%t] : !whole, !rows
      %e = mlafix.load %x[%t] group %c1 member %c1 : !rows -> f32
      mlafix.store %e, %y[%t] : f32, memref<?xf32, strided<[1], offset: ?>>
    }
  }
}

// -----

// The tensor with one element per group (scales) has other dims than x, so no call passes the same tensor for both, and
// lanes need no wait.
!scales = memref<?x2xf32, strided<[?, 1], offset: ?>>
!numbers = memref<?xf32, strided<[?], offset: ?>>
!group = tensor<2xf32, #mlafix.dim<2 per 64>>
module attributes {mlafix.target = "sm_80"} {
  // CHECK-LABEL: @groups
  // CHECK: mlafix.load %{{.*}} -> f32
  // CHECK-NOT: nvvm.bar
  mlafix.kernel @groups(%scales: !scales {mlafix.dims = ["n", "G"], mlafix.access = "write"}, %x: !numbers {mlafix.dims = ["n"], mlafix.access = "read"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 16, packs = 2, pack = 4, rows = 8>>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !numbers
    mlafix.forall (%t) in (%n) {
      %v = mlafix.load %x[%t] : !numbers -> f32
      %row = mlafix.splat %v : f32 -> !group
      mlafix.store %row, %scales[%t] : !group, !scales
    }
  }

  // The dims of x and scales are the same, so a call may pass the same tensor for both, and lanes wait.
  // CHECK-LABEL: @elements_of_groups
  // CHECK: mlafix.load %{{.*}} -> f32
  // CHECK: nvvm.bar.warp.sync
  // CHECK: mlafix.store
  mlafix.kernel @elements_of_groups(%scales: !scales {mlafix.dims = ["n", "G"], mlafix.access = "write"}, %x: !scales {mlafix.dims = ["n", "G"], mlafix.access = "read"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 16, packs = 2, pack = 4, rows = 8>>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !scales
    mlafix.forall (%t) in (%n) {
      %v = mlafix.load %x[%t, %c0] : !scales -> f32
      %row = mlafix.splat %v : f32 -> !group
      mlafix.store %row, %scales[%t] : !group, !scales
    }
  }
}

// -----

// The same lanes load and store a slice. Other lanes load another slice of the same size that overlaps the first, so
// lanes wait in between.
!rows = memref<?x128xf32, strided<[?, 1], offset: ?>>
!half = tensor<64xf32, #mlafix.dim<64>>
module attributes {mlafix.target = "sm_80"} {
  // CHECK-LABEL: @slices
  // CHECK: mlafix.store
  // CHECK-NEXT: mlafix.load %{{.*}} slice 0 to 64
  // CHECK-NEXT: nvvm.bar.warp.sync
  // CHECK-NEXT: mlafix.load %{{.*}} slice 32 to 96
  mlafix.kernel @slices(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 16, packs = 2, pack = 4, rows = 8>>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      %ones = arith.constant dense<1.0> : !half
      mlafix.store %ones, %x[%t] slice 0 to 64 : !half, !rows
      %a = mlafix.load %x[%t] slice 0 to 64 : !rows -> !half
      %b = mlafix.load %x[%t] slice 32 to 96 : !rows -> !half
    }
  }
}
