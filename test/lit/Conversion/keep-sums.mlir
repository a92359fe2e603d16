// Where a weight is 0, the sum stays as it is: a predicate of the addition, where a GPU has no arithmetic on pairs.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-states),mlafix-plan-layout{target=sm_90},mlafix.kernel(mlafix-distribute,canonicalize,cse,mlafix-keep-sums))" | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-states),mlafix-plan-layout{target=sm_100},mlafix.kernel(mlafix-distribute,canonicalize,cse,mlafix-keep-sums))" | FileCheck %s --check-prefix=MASKED
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-states),mlafix-plan-layout{target=x86-64-v3},mlafix.kernel(mlafix-distribute,canonicalize,cse,mlafix-keep-sums))" | FileCheck %s --check-prefix=MASKED

!rows = memref<?x4xf32, strided<[?, 1], offset: ?>>
!lses = memref<?xf32, strided<[?], offset: ?>>
!tile = tensor<4xf32, #mlafix.dim<4>>
!state = !mlafix.state<4, e>

// CHECK-LABEL: mlafix.kernel @two_dense
// The first payload is masked, and then multiplied.
// CHECK: %[[POWER:.*]] = math.exp2
// CHECK: %[[ISZERO:.*]] = arith.cmpf oeq, %[[POWER]]
// CHECK: %[[PAYLOAD0:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : vector<4xf32>
// CHECK: %[[BEFORE:.*]] = arith.mulf %{{.*}}, %[[PAYLOAD0]] : vector<4xf32>
// CHECK: %[[MORE:.*]] = math.fma %{{.*}}, %{{.*}}, %[[BEFORE]] : vector<4xf32>
// CHECK-NEXT: arith.select %{{.*}}, %[[BEFORE]], %[[MORE]] : vector<4xf32>
// MASKED-LABEL: mlafix.kernel @two_{{[a-z]+}}(
// MASKED: arith.select %{{.*}} : vector<4xf32>
// MASKED: arith.mulf %{{.*}} : vector<4xf32>
// MASKED: %[[PAYLOAD:.*]] = arith.select %{{.*}} : vector<4xf32>
// MASKED: math.fma %{{.*}}, %[[PAYLOAD]], %{{.*}} : vector<4xf32>
mlafix.kernel @two(%y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                   %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %a: !lses {mlafix.dims = ["n"], mlafix.access = "read"},
                   %z: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %b: !lses {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %first = mlafix.load_state %x[%t] lse %a[%t] : !rows, !lses -> !state
    %second = mlafix.load_state %z[%t] lse %b[%t] : !rows, !lses -> !state
    %sum = mlafix.merge %first, %second : !state
    mlafix.store_state %sum to %y[%t] : !state, !rows
  }
}

// A mask that says nothing of the factor stays where it is.
// CHECK-LABEL: mlafix.kernel @other_dense
// CHECK: %[[OTHER:.*]] = arith.select %{{.*}} : vector<4xf32>
// CHECK: math.fma %{{.*}}, %[[OTHER]], %{{.*}} : vector<4xf32>
mlafix.kernel @other(%y: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"},
                     %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %a: !lses {mlafix.dims = ["n"], mlafix.access = "read"},
                     %z: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %b: !lses {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %minus = arith.constant -0.0 : f32
  %n = memref.dim %y, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %u = mlafix.load %z[%t] : !rows -> !tile
    %l = mlafix.load %a[%t] : !lses -> f32
    %m = mlafix.load %b[%t] : !lses -> f32
    %isZero = arith.cmpf oeq, %l, %zero : f32
    %none = mlafix.splat %minus : f32 -> !tile
    %masked = arith.select %isZero, %none, %u : !tile
    %factor = mlafix.splat %m : f32 -> !tile
    %sum = math.fma %factor, %masked, %v : !tile
    mlafix.store %sum, %y[%t] : !tile, !rows
  }
}
