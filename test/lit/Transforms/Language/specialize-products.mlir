// The factors of a product are bound like other dims, and give the product its size. A factor without a value is an
// error.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=G=4,K=96})" | FileCheck %s
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=G=4})" 2>&1 | FileCheck %s --check-prefix=NODIM
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=G=4,K=96},mlafix.kernel(mlafix-lower-states),canonicalize)" | FileCheck %s --check-prefix=LOWER

// NODIM: error: expected a size for dim 'K' of kernel 'k', got no binding of it

!rows = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!lses = memref<?xf32, strided<[?], offset: ?>>
!state = !mlafix.state<"G" x "K", 2>

// CHECK-LABEL: mlafix.kernel @k(
// CHECK-SAME: %x: memref<?x384xbf16, strided<[?, 1], offset: ?>> {mlafix.access = "read", mlafix.dims = ["n", "(G K)"]}
// CHECK-SAME: %y: memref<?x32xi32, strided<[?, 1], offset: ?>> {mlafix.access = "write", mlafix.dims = ["n", "(G 8)"]}
// CHECK-SAME: attributes {bindings = {G = 4 : i64, K = 96 : i64}}
// LOWER-LABEL: mlafix.kernel @k(
mlafix.kernel @k(
    %x: !rows {mlafix.dims = ["n", "(G K)"], mlafix.access = "read"},
    %lse: !lses {mlafix.dims = ["n"], mlafix.access = "update"},
    %y: memref<?x?xi32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "(G 8)"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // CHECK: mlafix.load_state {{.*}} -> <4 x 96, 2>
    // LOWER: %[[ROW:.*]] = mlafix.load %x
    // LOWER: %[[LSE:.*]] = mlafix.load %lse
    // LOWER: %[[MAX:.*]] = arith.select %{{.*}}, %{{.*}}, %[[LSE]]
    %s = mlafix.load_state %x[%t] lse %lse[%t] : !rows, !lses -> !state
    // CHECK: mlafix.payload %{{.*}} : <4 x 96, 2>
    // LOWER: %[[EMPTY:.*]] = arith.cmpf oeq, %[[MAX]], %{{.*}} : f32
    // LOWER: arith.divf {{.*}} fastmath<arcp>
    // LOWER: %[[V:.*]] = arith.select %[[EMPTY]], {{.*}} : tensor<384xf32, #mlafix.dim<4 x 96>>
    %v = mlafix.payload %s : !state
    // CHECK: mlafix.lse_of %{{.*}} : <4 x 96, 2>
    // LOWER: math.log2 {{.*}} fastmath<afn>
    // LOWER: %[[MERGED:.*]] = arith.select {{.*}} : f32
    // LOWER: %[[OUT:.*]] = arith.select %{{.*}}, %{{.*}}, %[[MERGED]] : f32
    // LOWER: mlafix.store %[[OUT]], %lse
    %l = mlafix.lse_of %s : !state
    mlafix.store %l, %lse[%t] : f32, !lses
    // The result is the smallest index of the group's extreme, minus the index at which the group begins.
    // CHECK: mlafix.arg_reduce max %{{.*}} : tensor<384xf32, #mlafix.dim<4 x 96>> -> tensor<4xi32, #mlafix.dim<4>>
    // LOWER: %[[MOST:.*]] = mlafix.reduce max %[[V]] : tensor<384xf32, #mlafix.dim<4 x 96>> -> tensor<4xf32, #mlafix.dim<4>>
    // LOWER: arith.bitcast %[[MOST]]
    // LOWER: mlafix.broadcast
    // LOWER: %[[LEAST:.*]] = mlafix.reduce min {{.*}} -> tensor<4xi32, #mlafix.dim<4>>
    // LOWER: %[[INDEX:.*]] = mlafix.iota : tensor<384xi32, #mlafix.dim<4 x 96>>
    // LOWER: %[[FIRST:.*]] = mlafix.reduce min %[[INDEX]]
    // LOWER: arith.subi %[[LEAST]], %[[FIRST]]
    %i = mlafix.arg_reduce max %v : tensor<?xf32, #mlafix.dim<"G" x "K">> -> tensor<?xi32, #mlafix.dim<"G">>
    // CHECK: mlafix.broadcast {{.*}} -> tensor<32xi32, #mlafix.dim<4 x 8>>
    %b = mlafix.broadcast %i : tensor<?xi32, #mlafix.dim<"G">> -> tensor<?xi32, #mlafix.dim<"G" x 8>>
    mlafix.store %b, %y[%t] : tensor<?xi32, #mlafix.dim<"G" x 8>>, memref<?x?xi32, strided<[?, 1], offset: ?>>
  }
}
