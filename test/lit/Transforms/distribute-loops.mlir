// A long row on a CPU is walked in loops over packs, one per stage: a reduction ends a stage, a row that a later stage needs is
// kept in a buffer, and partial sums meet in the order of the unrolled tree (N9).
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-layout{target=x86-64-v3},mlafix.kernel(mlafix-distribute),canonicalize,cse)" | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-layout{target=sm_90},mlafix.kernel(mlafix-distribute),canonicalize,cse)" | FileCheck %s --check-prefix=GPU

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
    // 257 partial sums: 128 pairs and one that moves on.
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
