// Names become sizes and dtypes in arguments, tiles and states; strides stay as they are.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=H=16,D=96,T=f16})" | FileCheck %s

!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
!state = !mlafix.state<"D", e>

// CHECK-LABEL: mlafix.kernel @copy(
// CHECK-SAME: %out: memref<?x16x96xf16, strided<[?, ?, 1], offset: ?>>
// CHECK-SAME: %x: memref<?x16x96xf16, strided<[?, ?, 1], offset: ?>>
// CHECK-SAME: %lse: memref<16x?xf32, strided<[?, ?], offset: ?>>
// CHECK-SAME: attributes {bindings = {D = 96 : i64, H = 16 : i64, T = "f16"}}
mlafix.kernel @copy(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"},
    %lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  %H = memref.dim %out, %c1 : !rows
  mlafix.forall (%t, %h) in (%n, %H) {
    // CHECK: mlafix.load_state %x{{.*}} : memref<?x16x96xf16, {{.*}}>, memref<16x?xf32, {{.*}}> -> <96, e>
    %s = mlafix.load_state %x[%t, %h] lse %lse[%h, %t] : !rows, !lses -> !state
    mlafix.store_state %s to %out[%t, %h] : !state, !rows
    // CHECK: mlafix.load %x{{.*}} -> tensor<96xf32, #mlafix.dim<96>>
    %v = mlafix.load %x[%t, %h] : !rows -> tensor<?xf32, #mlafix.dim<"D">>
    // CHECK: arith.addf %{{.*}} : tensor<96xf32, #mlafix.dim<96>>
    %w = arith.addf %v, %v : tensor<?xf32, #mlafix.dim<"D">>
    mlafix.store %w, %out[%t, %h] : tensor<?xf32, #mlafix.dim<"D">>, !rows
  }
}
