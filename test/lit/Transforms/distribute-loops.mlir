// A CPU processes a long row in loops over packs, one per stage. A reduction ends a stage. A row that a later stage
// needs is kept in a buffer. Partial sums are combined in the order of the unrolled tree (N9).
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=x86-64-v3},mlafix.kernel(mlafix-distribute),canonicalize,cse)" | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90},mlafix.kernel(mlafix-distribute),canonicalize,cse)" | FileCheck %s --check-prefix=GPU

!rows = memref<?x4112xf32, strided<[?, 1], offset: ?>>
!tile = tensor<4112xf32, #mlafix.dim<4112>>

// GPU-NOT: memref.alloca() : memref<4112xf32>
// CHECK-LABEL: mlafix.kernel @center_any
mlafix.kernel @center(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  // CHECK-DAG: %[[KEPT:.*]] = memref.alloca() : memref<4112xf32>
  // CHECK-DAG: %[[SUMS:.*]] = memref.alloca() : memref<257xf32>
  // CHECK: scf.for %[[T:.*]] = %begin to %end
  mlafix.forall (%t) in (%n) {
    // CHECK: scf.for %[[I:.*]] = %c0 to %c4112 step %c16
    // CHECK-NEXT: %[[V:.*]] = vector.load %x[%[[T]], %[[I]]]
    // CHECK-NEXT: vector.store %[[V]], %[[KEPT]][%[[I]]]
    // CHECK: memref.store %{{.*}}, %[[SUMS]]
    %v = mlafix.load %x[%t] : !rows -> !tile
    // There are 257 partial sums. The first round adds 128 pairs and keeps the last sum as it is.
    // CHECK: scf.for %{{.*}} = %c0 to %c128 step %c1
    // CHECK: memref.load %[[SUMS]][%c256]
    // CHECK: scf.for %{{.*}} = %c0 to %c64 step %c1
    // CHECK: scf.for %{{.*}} = %c0 to %c32 step %c1
    %sum = mlafix.reduce add %v : !tile
    %count = arith.constant 4112.0 : f32
    // CHECK: %[[MEAN:.*]] = arith.divf %{{.*}}, %{{.*}} : f32
    %mean = arith.divf %sum, %count : f32
    %means = mlafix.splat %mean : f32 -> !tile
    // CHECK: scf.for %[[J:.*]] = %c0 to %c4112 step %c16
    // CHECK-DAG: %[[W:.*]] = vector.load %[[KEPT]][%[[J]]]
    // CHECK-DAG: vector.broadcast %[[MEAN]]
    // CHECK: arith.subf %[[W]]
    // CHECK: vector.store %{{.*}}, %x[%[[T]], %[[J]]]
    %y = arith.subf %v, %means : !tile
    mlafix.store %y, %x[%t] : !tile, !rows
  }
}

// A row that a loop carries is kept in a buffer. Each iteration has one loop over packs, which loads, changes and
// stores each pack. Scalars stay in registers.
// CHECK-LABEL: mlafix.kernel @running_any
!parts = memref<?x?x4112xf32, strided<[?, ?, 1], offset: ?>>
mlafix.kernel @running(%out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                       %x: !parts {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !parts
  %k = memref.dim %x, %c1 : !parts
  // CHECK: %[[ACC:.*]] = memref.alloca() : memref<4112xf32>
  // CHECK: scf.for %[[T:.*]] = %begin to %end
  mlafix.forall (%t) in (%n) {
    %one = arith.constant 1.0 : f32
    %zeros = arith.constant dense<0.0> : tensor<4112xf32, #mlafix.dim<4112>>
    // CHECK: scf.for %[[I:.*]] = %c0 to %c4112 step %c16
    // CHECK: vector.store %{{.*}}, %[[ACC]][%[[I]]]
    // CHECK: %[[COUNT:.*]] = scf.for %[[K:.*]] = %c0 to %{{.*}} step %c1 iter_args(%[[C:.*]] = %{{.*}}) -> (f32)
    %sum, %count = scf.for %j = %c0 to %k step %c1 iter_args(%acc = %zeros, %c = %one) -> (!tile, f32) {
      // CHECK: scf.for %[[J:.*]] = %c0 to %c4112 step %c16
      // CHECK-DAG: %[[OLD:.*]] = vector.load %[[ACC]][%[[J]]]
      // CHECK-DAG: %[[PART:.*]] = vector.load %x[%[[T]], %[[K]], %[[J]]]
      // CHECK: %[[NEW:.*]] = arith.addf %[[OLD]], %[[PART]]
      // CHECK: vector.store %[[NEW]], %[[ACC]][%[[J]]]
      // CHECK: scf.yield %{{.*}} : f32
      %part = mlafix.load %x[%t, %j] : !parts -> !tile
      %next = arith.addf %acc, %part : !tile
      %more = arith.addf %c, %one : f32
      scf.yield %next, %more : !tile, f32
    }
    // CHECK: scf.for %[[L:.*]] = %c0 to %c4112 step %c16
    // CHECK-DAG: vector.load %[[ACC]][%[[L]]]
    // CHECK-DAG: vector.broadcast %[[COUNT]]
    // CHECK: vector.store %{{.*}}, %out[%[[T]], %[[L]]]
    %counts = mlafix.splat %count : f32 -> !tile
    %mean = arith.divf %sum, %counts : !tile
    mlafix.store %mean, %out[%t] : !tile, !rows
  }
}

// Tests a row that a branch yields, a row that a nested block uses, and two rows that each iteration of a loop
// exchanges.
// CHECK-LABEL: mlafix.kernel @branches_any
// CHECK-NOT: vector<4112xf32>
// CHECK-NOT: tensor<
mlafix.kernel @branches(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}, %y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}, %p: i1, %k: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %a = mlafix.load %x[%t] : !rows -> !tile
    %b = mlafix.load %y[%t] : !rows -> !tile
    %c, %d = scf.for %j = %c0 to %k step %c1 iter_args(%u = %a, %v = %b) -> (!tile, !tile) {
      scf.yield %v, %u : !tile, !tile
    }
    %e = scf.if %p -> (!tile) {
      %s = mlafix.reduce add %c : !tile
      %ss = mlafix.splat %s : f32 -> !tile
      %r = arith.mulf %a, %ss : !tile
      scf.yield %r : !tile
    } else {
      scf.yield %d : !tile
    }
    mlafix.store %e, %x[%t] : !tile, !rows
    mlafix.store %d, %y[%t] : !tile, !rows
  }
}
