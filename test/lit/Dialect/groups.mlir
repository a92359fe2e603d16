// Products of dims, and the ops on groups of such products, are printed and parsed without a change. A broadcast of a
// splat folds to a splat.
// RUN: %mlafix-opt %s | %mlafix-opt | FileCheck %s
// RUN: %mlafix-opt %s --mlir-print-op-generic | %mlafix-opt | FileCheck %s
// RUN: %mlafix-opt %s --canonicalize | FileCheck %s --check-prefix=FOLDED
// RUN: %mlafix-opt %s --emit=signature | FileCheck %s --check-prefix=NAMES

!rows = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!lses = memref<?xf32, strided<[?], offset: ?>>
!row = tensor<?xf32, #mlafix.dim<"G" x "K">>
!each = tensor<?xf32, #mlafix.dim<"G">>

// NAMES: "names":{"G":null,"K":null}
// CHECK-LABEL: mlafix.kernel @k(
// CHECK-SAME: mlafix.dims = ["n", "(G K)"]
// CHECK-SAME: mlafix.dims = ["n", "(4 128)"]
// FOLDED-LABEL: mlafix.kernel @k(
mlafix.kernel @k(
    %x: !rows {mlafix.dims = ["n", "(G K)"], mlafix.access = "update"},
    %lse: !lses {mlafix.dims = ["n"], mlafix.access = "read"},
    %fixed: memref<?x512xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "(4 128)"], mlafix.access = "read"},
    %s: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "G"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // CHECK: mlafix.load_state {{.*}} -> <"G" x "K", e>
    %state = mlafix.load_state %x[%t] lse %lse[%t] : !rows, !lses -> !mlafix.state<"G" x "K", e>
    // CHECK: %[[V:.*]] = mlafix.payload %{{.*}} : <"G" x "K", e>
    %v = mlafix.payload %state : !mlafix.state<"G" x "K", e>
    // CHECK: mlafix.lse_of %{{.*}} : <"G" x "K", e>
    %l = mlafix.lse_of %state : !mlafix.state<"G" x "K", e>
    // CHECK: %[[M:.*]] = mlafix.reduce max %[[V]] : tensor<?xf32, #mlafix.dim<"G" x "K">> -> tensor<?xf32, #mlafix.dim<"G">>
    %m = mlafix.reduce max %v : !row -> !each
    // CHECK: mlafix.arg_reduce min %[[V]] : tensor<?xf32, #mlafix.dim<"G" x "K">> -> tensor<?xi32, #mlafix.dim<"G">>
    %i = mlafix.arg_reduce min %v : !row -> tensor<?xi32, #mlafix.dim<"G">>
    // CHECK: mlafix.scan max %[[V]] in_groups : tensor<?xf32, #mlafix.dim<"G" x "K">>
    %highest = mlafix.scan max %v in_groups : !row
    // CHECK: mlafix.scan add %[[V]] : tensor<?xf32, #mlafix.dim<"G" x "K">>
    %sums = mlafix.scan add %v : !row
    // CHECK: mlafix.reduce add %[[V]] : tensor<?xf32, #mlafix.dim<"G" x "K">>{{$}}
    %sum = mlafix.reduce add %v : !row
    // CHECK: mlafix.load %fixed[%{{.*}}] {{.*}} -> tensor<512xf32, #mlafix.dim<4 x 128>>
    %w = mlafix.load %fixed[%t] : memref<?x512xf32, strided<[?, 1], offset: ?>> -> tensor<512xf32, #mlafix.dim<4 x 128>>
    // CHECK: mlafix.reduce min %{{.*}} : tensor<512xf32, #mlafix.dim<4 x 128>> -> tensor<4xf32, #mlafix.dim<4 per 128>>
    %least = mlafix.reduce min %w : tensor<512xf32, #mlafix.dim<4 x 128>> -> tensor<4xf32, #mlafix.dim<4 per 128>>
    // CHECK: mlafix.load %s[%{{.*}}] {{.*}} -> tensor<?xf32, #mlafix.dim<"G" per "K">>
    %p = mlafix.load %s[%t] : memref<?x?xf32, strided<[?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"G" per "K">>
    %c = arith.addf %p, %p : tensor<?xf32, #mlafix.dim<"G" per "K">>
    // CHECK: mlafix.broadcast %{{.*}} : tensor<?xf32, #mlafix.dim<"G" per "K">> -> tensor<?xf32, #mlafix.dim<"G" x "K">>
    %q = mlafix.broadcast %c : tensor<?xf32, #mlafix.dim<"G" per "K">> -> !row
    %one = mlafix.splat %sum : f32 -> !each
    // FOLDED: %[[ONE:.*]] = mlafix.splat %{{.*}} : f32 -> tensor<?xf32, #mlafix.dim<"G" x "K">>
    // FOLDED-NOT: mlafix.broadcast %[[ONE]]
    %ones = mlafix.broadcast %one : !each -> !row
    %r = arith.addf %q, %ones : !row
    mlafix.store %r, %x[%t] : !row, !rows
    %e = arith.addf %m, %m : !each
    mlafix.store %e, %s[%t] : !each, memref<?x?xf32, strided<[?, 1], offset: ?>>
  }
}
