// A row is reduced along the bits of the element index, lowest first, in every variant (N9): within a pack, across
// lanes, across packs. A lane past the row's end contributes the neutral element.
// RUN: %mlafix-opt %s --split-input-file --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_80 machine=sharedPacks=1},mlafix.kernel(mlafix-distribute),canonicalize,cse)" | FileCheck %s

// CHECK-LABEL: @reduce_fast
// CHECK-SAME: lanes = 32, packs = 1, pack = 4
// CHECK: %[[V:.*]] = vector.maskedload
// CHECK: %[[P01:.*]] = arith.addf %{{.*}}, %{{.*}}
// CHECK: %[[P23:.*]] = arith.addf %{{.*}}, %{{.*}}
// CHECK: %[[P:.*]] = arith.addf %[[P01]], %[[P23]]
// CHECK: %[[MINE:.*]] = arith.select %{{.*}}, %[[P]], %{{.*}} : f32
// CHECK: nvvm.shfl.sync bfly %c-1_i32, %[[MINE]], %c1_i32, %c31_i32
// CHECK: nvvm.shfl.sync bfly %c-1_i32, %{{.*}}, %c2_i32, %c31_i32
// CHECK: nvvm.shfl.sync bfly %c-1_i32, %{{.*}}, %c4_i32, %c31_i32
// CHECK: nvvm.shfl.sync bfly %c-1_i32, %{{.*}}, %c8_i32, %c31_i32
// CHECK: nvvm.shfl.sync bfly %c-1_i32, %{{.*}}, %c16_i32, %c31_i32
// CHECK-NOT: shfl
// CHECK-LABEL: @reduce_any
mlafix.kernel @reduce(%x: memref<?x100xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                      %y: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x100xf32, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : memref<?x100xf32, strided<[?, 1], offset: ?>> -> tensor<100xf32, #mlafix.dim<100>>
    %s = mlafix.reduce add %v : tensor<100xf32, #mlafix.dim<100>>
    mlafix.store %s, %y[%t] : f32, memref<?xf32, strided<[1], offset: ?>>
  }
}

// -----

// If a row has several warps, the warps exchange partial results through shared memory. Each lane computes the maximum
// of its packs before the lanes synchronise.
// CHECK-LABEL: @reduce_fast
// CHECK-SAME: lanes = 128, packs = 4, pack = 4, rows = 1
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl.sync
// CHECK-DAG: memref.alloca() : memref<4xi32, #mlafix_thread.scratch>
// CHECK: nvvm.barrier
// CHECK-COUNT-4: memref.load
// CHECK-NOT: memref.load
// CHECK: nvvm.barrier
// CHECK-LABEL: @reduce_any
mlafix.kernel @reduce(%x: memref<?x2048xi32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                      %y: memref<?xi32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x2048xi32, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : memref<?x2048xi32, strided<[?, 1], offset: ?>> -> tensor<2048xi32, #mlafix.dim<2048>>
    %s = mlafix.reduce max %v : tensor<2048xi32, #mlafix.dim<2048>>
    mlafix.store %s, %y[%t] : i32, memref<?xi32, strided<[1], offset: ?>>
  }
}

// A sum combines the lanes of each pack first, then the packs.
// CHECK-LABEL: @sum_fast
// CHECK-COUNT-6: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl.sync
// CHECK-DAG: memref.alloca() : memref<16xi32, #mlafix_thread.scratch>
// CHECK-COUNT-16: memref.load
// CHECK-LABEL: @sum_any
mlafix.kernel @sum(%x: memref<?x2048xi32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                      %y: memref<?xi32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x2048xi32, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : memref<?x2048xi32, strided<[?, 1], offset: ?>> -> tensor<2048xi32, #mlafix.dim<2048>>
    %s = mlafix.reduce add %v : tensor<2048xi32, #mlafix.dim<2048>>
    mlafix.store %s, %y[%t] : i32, memref<?xi32, strided<[1], offset: ?>>
  }
}
