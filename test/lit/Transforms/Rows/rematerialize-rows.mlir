// A row that is too long for a buffer is loaded and computed again for each use. Its reduction keeps the partial
// results of up to four packs, and the combined result of every four packs.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid,mlafix-loop-over-packs))" | FileCheck %s

!rows = memref<?x96xf32, strided<[?, 1], offset: ?>>
!tile = tensor<96xf32, #mlafix.dim<96>>
module attributes {mlafix.target = "x86-64-v3"} {
  // CHECK-LABEL: mlafix.kernel @again
  mlafix.kernel @again(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 1, packs = 6, pack = 16, rows = 1>, row_loops = yes, kept_elements = 5>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    // CHECK-NOT: memref<96xf32>
    // CHECK-DAG: %[[SUMS:.*]] = memref.alloca() : memref<4xf32>
    // CHECK-DAG: %[[BLOCKS:.*]] = memref.alloca() : memref<2xf32>
    // CHECK-NOT: memref<96xf32>
    // CHECK: scf.for %{{.*}} = %begin to %end
    mlafix.forall (%t) in (%n) {
      // CHECK: scf.for %[[I:.*]] =
      // CHECK: %[[V:.*]] = vector.load %x[%{{.*}}, %[[I]]]
      // CHECK: math.absf %[[V]]
      // CHECK: memref.store %{{.*}}, %[[SUMS]]
      // CHECK: scf.if
      // CHECK: memref.store %{{.*}}, %[[BLOCKS]]
      %v = mlafix.load %x[%t] : !rows -> !tile
      %w = math.absf %v : !tile
      %sum = mlafix.reduce add %w : !tile
      // CHECK: scf.for
      // CHECK: memref.load %[[BLOCKS]]
      // CHECK: scf.for %[[J:.*]] =
      // CHECK: %[[U:.*]] = vector.load %x[%{{.*}}, %[[J]]]
      // CHECK: %[[W:.*]] = math.absf %[[U]]
      // CHECK: %[[S:.*]] = vector.broadcast
      // CHECK: %[[Y:.*]] = arith.subf %[[W]], %[[S]]
      // CHECK: vector.store %[[Y]], %x[%{{.*}}, %[[J]]]
      %means = mlafix.splat %sum : f32 -> !tile
      %y = arith.subf %w, %means : !tile
      mlafix.store %y, %x[%t] : !tile, !rows
    }
  }

  // A row is kept in a buffer if the kernel overwrites the memory of the row before its last use.
  // CHECK-LABEL: mlafix.kernel @written
  mlafix.kernel @written(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}, %y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"},
      %z: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 1, packs = 6, pack = 16, rows = 1>, row_loops = yes, kept_elements = 5>} {
    %c0 = arith.constant 0 : index
    %c7 = arith.constant 7 : index
    %n = memref.dim %x, %c0 : !rows
    // CHECK-COUNT-2: memref.alloca() : memref<96xf32>
    // CHECK-NOT: memref.alloca() : memref<96xf32>
    // CHECK: scf.for
    mlafix.forall (%t) in (%n) {
      %v = mlafix.load %x[%t] : !rows -> !tile
      %w = mlafix.load %y[%t] : !rows -> !tile
      %most = mlafix.reduce max %v : !tile
      %all = mlafix.splat %most : f32 -> !tile
      mlafix.store %all, %x[%t] : !tile, !rows
      %u = arith.addf %w, %all : !tile
      %least = mlafix.reduce min %u : !tile
      mlafix.store %least, %y[%t, %c7] : f32, !rows
      %both = mlafix.splat %least : f32 -> !tile
      %r = arith.addf %v, %both : !tile
      mlafix.store %r, %z[%t] : !tile, !rows
    }
  }
}

// -----

// A row is also kept if a branch overwrites its memory, or if an op needs elements at other positions than its results.
// A loop that stores to another tensor does not matter.
!rows = memref<?x96xf32, strided<[?, 1], offset: ?>>
!tile = tensor<96xf32, #mlafix.dim<96>>
module attributes {mlafix.target = "x86-64-v3"} {
  // CHECK-LABEL: mlafix.kernel @stored_in_a_branch
  mlafix.kernel @stored_in_a_branch(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}, %y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
      %f: f32, %p: i1)
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 1, packs = 6, pack = 16, rows = 1>, row_loops = yes, kept_elements = 5>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    // CHECK: %[[KEPT:.*]] = memref.alloca() : memref<96xf32>
    // CHECK-NOT: memref.alloca() : memref<96xf32>
    mlafix.forall (%t) in (%n) {
      // CHECK: vector.load %x
      // CHECK: vector.store %{{.*}}, %[[KEPT]]
      %v = mlafix.load %x[%t] : !rows -> !tile
      // CHECK: scf.if
      scf.if %p {
        %w = mlafix.splat %f : f32 -> !tile
        // CHECK: vector.store %{{.*}}, %x
        mlafix.store %w, %x[%t] : !tile, !rows
      }
      // CHECK: vector.load %[[KEPT]]
      // CHECK: vector.store %{{.*}}, %y
      mlafix.store %v, %y[%t] : !tile, !rows
    }
  }

  // CHECK-LABEL: mlafix.kernel @stored_elsewhere
  mlafix.kernel @stored_elsewhere(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
      %z: !rows {mlafix.dims = ["m", "D"], mlafix.access = "write"}, %f: f32, %k: index)
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 1, packs = 6, pack = 16, rows = 1>, row_loops = yes, kept_elements = 5>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !rows
    // CHECK-NOT: memref.alloca() : memref<96xf32>
    mlafix.forall (%t) in (%n) {
      // CHECK: memref.store
      %v = mlafix.load %x[%t] : !rows -> !tile
      %most = mlafix.reduce max %v : !tile
      scf.for %i = %c0 to %k step %c1 {
        %w = mlafix.splat %most : f32 -> !tile
        mlafix.store %w, %z[%i] : !tile, !rows
      }
      // CHECK: vector.store %{{.*}}, %z
      // CHECK: vector.load %x
      // CHECK: vector.store %{{.*}}, %y
      mlafix.store %v, %y[%t] : !tile, !rows
    }
  }

  // CHECK-LABEL: mlafix.kernel @shifted
  mlafix.kernel @shifted(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 1, packs = 6, pack = 16, rows = 1>, row_loops = yes, kept_elements = 5>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    // CHECK: %[[KEPT:.*]] = memref.alloca() : memref<96xf32>
    mlafix.forall (%t) in (%n) {
      // CHECK: vector.store %{{.*}}, %[[KEPT]]
      // CHECK: scf.for
      // CHECK: %[[V:.*]] = vector.load %[[KEPT]]
      // CHECK: vector.store %[[V]], %x
      %v = mlafix.load_into %x[%t] from 1 : !rows -> !tile
      mlafix.store %v, %x[%t] : !tile, !rows
    }
  }
}

// -----

// The total size of a thread's buffers is limited.
!rows = memref<?x64xf32, strided<[?, 1], offset: ?>>
!tile = tensor<64xf32, #mlafix.dim<64>>
module attributes {mlafix.target = "x86-64-v3", mlafix.machine = ["stackBytes=271"]} {
  mlafix.kernel @kept(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 1, packs = 4, pack = 16, rows = 1>, row_loops = yes>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      // expected-error @below {{expected at most 271 bytes of rows per thread, got 272 (256 here): a row of 64 elements is kept across a loop or a branch, or because its memory is written before its last use; shorten the rows, or let another kernel write them to a tensor first}}
      %v = mlafix.load %x[%t] : !rows -> !tile
      %sum = mlafix.reduce add %v : !tile
      %means = mlafix.splat %sum : f32 -> !tile
      %y = arith.subf %v, %means : !tile
      mlafix.store %y, %x[%t] : !tile, !rows
    }
  }
}
