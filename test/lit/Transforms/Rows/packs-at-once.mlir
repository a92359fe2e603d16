// An iteration of a loop over packs loads several packs, and lanes exchange their partial results together.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid,mlafix-loop-over-packs))" | FileCheck %s
// RUN: sed 's/loop_elements = 8/loop_elements = 1/' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-grid,mlafix-loop-over-packs))" | FileCheck %s --check-prefix=ONE

!rows = memref<?x1504xf32, strided<[?, 1], offset: ?>>
!tile = tensor<1504xf32, #mlafix.dim<1504>>
!numbers = memref<?xf32, strided<[?], offset: ?>>
module attributes {mlafix.target = "sm_90"} {
  // Of the 48 packs of six iterations, a lane has 47. Each iteration has one partial result. Eight packs take twelve
  // shuffles, one pack takes five.
  // CHECK-LABEL: mlafix.kernel @sum
  // CHECK-DAG: memref.alloca() : memref<6xf32>
  // CHECK: scf.for %{{.*}} = %{{.*}} to %c1504{{.*}} step %c256
  // CHECK-COUNT-8: vector.maskedload
  // CHECK-NOT: vector.maskedload
  // CHECK-COUNT-12: nvvm.shfl.sync
  // CHECK-NOT: nvvm.shfl.sync
  // CHECK: memref.store
  // ONE-LABEL: mlafix.kernel @sum
  // ONE-DAG: memref.alloca() : memref<47xf32>
  // ONE: scf.for %{{.*}} = %{{.*}} to %c1504 step %c32
  // ONE: vector.load
  // ONE-COUNT-5: nvvm.shfl.sync
  // ONE-NOT: nvvm.shfl.sync
  // ONE: memref.store
  mlafix.kernel @sum(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                     %y: !numbers {mlafix.dims = ["n"], mlafix.access = "write"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 47, pack = 1, rows = 4>, row_loops = yes, loop_elements = 8>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      %v = mlafix.load %x[%t] : !rows -> !tile
      %sum = mlafix.reduce add %v : !tile
      mlafix.store %sum, %y[%t] : f32, !numbers
    }
  }

  // Lanes exchange one maximum of all packs of an iteration.
  // CHECK-LABEL: mlafix.kernel @most
  // CHECK: scf.for %{{.*}} = %{{.*}} to %c1504{{.*}} step %c256
  // CHECK-COUNT-7: arith.maximumf
  // CHECK-COUNT-5: nvvm.shfl.sync
  // CHECK-NOT: nvvm.shfl.sync
  // CHECK: memref.store
  mlafix.kernel @most(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"},
                      %y: !numbers {mlafix.dims = ["n"], mlafix.access = "write"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 47, pack = 1, rows = 4>, row_loops = yes, loop_elements = 8>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      %v = mlafix.load %x[%t] : !rows -> !tile
      %most = mlafix.reduce max %v : !tile
      mlafix.store %most, %y[%t] : f32, !numbers
    }
  }

  // A quarter of the packs is the most of an iteration: four of sixteen.
  // CHECK-LABEL: mlafix.kernel @quarter
  // CHECK: scf.for %{{.*}} = %{{.*}} to %c512{{.*}} step %c128
  mlafix.kernel @quarter(%x: memref<?x512xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "update"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 16, pack = 1, rows = 4>, row_loops = yes, loop_elements = 8>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : memref<?x512xf32, strided<[?, 1], offset: ?>>
    mlafix.forall (%t) in (%n) {
      %v = mlafix.load %x[%t] : memref<?x512xf32, strided<[?, 1], offset: ?>> -> tensor<512xf32, #mlafix.dim<512>>
      %w = arith.negf %v : tensor<512xf32, #mlafix.dim<512>>
      mlafix.store %w, %x[%t] : tensor<512xf32, #mlafix.dim<512>>, memref<?x512xf32, strided<[?, 1], offset: ?>>
    }
  }

  // A scan takes one pack after the other. The buffer of a row that another loop reads has room for whole iterations.
  // CHECK-LABEL: mlafix.kernel @scanned
  // CHECK-DAG: memref.alloca() : memref<48xf32>
  // CHECK: scf.for %{{.*}} = %{{.*}} to %c1504 step %c32
  // CHECK: scf.for %{{.*}} = %{{.*}} to %c1504{{.*}} step %c256
  mlafix.kernel @scanned(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"})
      attributes {guards = [], plan = #mlafix.plan<layout = <lanes = 32, packs = 47, pack = 1, rows = 4>, row_loops = yes, loop_elements = 8>} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : !rows
    mlafix.forall (%t) in (%n) {
      %v = mlafix.load %x[%t] : !rows -> !tile
      %w = mlafix.scan add %v : !tile
      %most = mlafix.reduce max %w : !tile
      %all = mlafix.splat %most : f32 -> !tile
      %z = arith.subf %w, %all : !tile
      mlafix.store %z, %x[%t] : !tile, !rows
    }
  }
}
