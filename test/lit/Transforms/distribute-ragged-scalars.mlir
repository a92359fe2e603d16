// If a row and then a scalar are stored to the same memory, the lanes wait for each other in between, so that the
// scalar is stored last.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-plan-kernel{target=sm_90},mlafix.kernel(mlafix-distribute),canonicalize,cse)" | FileCheck %s

!rows = memref<?x64xf32, strided<[?, 1], offset: ?>>
!ints = memref<?xi32, strided<[1], offset: ?>>

// CHECK-LABEL: @same_tensor_fast
// CHECK: nvvm.shfl.sync up
// CHECK-NOT: memref.store %{{.*}}, %out[
// CHECK: vector.store %{{.*}}, %out[
// CHECK: nvvm.bar.warp.sync
// CHECK: memref.store %{{.*}}, %out[
mlafix.kernel @same_tensor(%out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"},
                           %starts: !ints {mlafix.dims = ["b1"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.ragged_forall (%b, %t) in (%starts, %n) : !ints where {
    %yes = arith.constant true
    mlafix.yield %yes : i1
  } do {
    %row = arith.constant dense<1.0> : tensor<64xf32, #mlafix.dim<64>>
    %two = arith.constant 2.0 : f32
    mlafix.store %row, %out[%t] : tensor<64xf32, #mlafix.dim<64>>, !rows
    mlafix.store %two, %out[%t, %c0] : f32, !rows
  }
}
