// A state with weight 0 does not change the sum. On GPUs without arithmetic on pairs, the addition of such a state is
// predicated off. On other targets, its payload is masked.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-states),mlafix-plan-kernel{target=sm_90},mlafix.kernel(mlafix-distribute,canonicalize,cse,mlafix-skip-zero-weight-adds))" | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-states),mlafix-plan-kernel{target=sm_100},mlafix.kernel(mlafix-distribute,canonicalize,cse,mlafix-skip-zero-weight-adds))" | FileCheck %s --check-prefix=MASKED
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-lower-states),mlafix-plan-kernel{target=x86-64-v3},mlafix.kernel(mlafix-distribute,canonicalize,cse,mlafix-skip-zero-weight-adds))" | FileCheck %s --check-prefix=MASKED

!rows = memref<?x4xf32, strided<[?, 1], offset: ?>>
!lses = memref<?xf32, strided<[?], offset: ?>>
!tile = tensor<4xf32, #mlafix.dim<4>>
!state = !mlafix.state<4, e>

// CHECK-LABEL: mlafix.kernel @two_dense
// The first payload is masked and then multiplied.
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

// A merged row of eight elements that the kernel computes with. If both states are empty, both payloads are left out,
// and the result is 1 * -0.0 * -1 = 0 without a select. Rows of four elements (@two) use a select.
// CHECK-LABEL: mlafix.kernel @computed_dense
// CHECK-DAG: %[[MINUS_ZEROS:.*]] = arith.constant dense<-0.000000e+00> : vector<8xf32>
// CHECK: %[[LARGEST:.*]] = arith.maximumf
// CHECK-NEXT: %[[NONE:.*]] = arith.cmpf oeq, %[[LARGEST]]
// CHECK: %[[NOFIRST:.*]] = arith.ori %{{.*}}, %[[NONE]]
// CHECK: %[[PAYLOAD0:.*]] = arith.select %[[NOFIRST]], %[[MINUS_ZEROS]], %{{.*}} : vector<8xf32>
// CHECK: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK: %[[WEIGHT:.*]] = arith.select %[[NONE]], %[[ONE]], %{{.*}} : f32
// CHECK: %[[WEIGHTS:.*]] = vector.broadcast %[[WEIGHT]]
// CHECK: %[[BEFORE:.*]] = arith.mulf %[[WEIGHTS]], %[[PAYLOAD0]]
// CHECK: %[[MORE:.*]] = math.fma %{{.*}}, %{{.*}}, %[[BEFORE]]
// CHECK: %[[NOSECOND:.*]] = arith.ori %{{.*}}, %[[NONE]]
// CHECK: %[[SUM:.*]] = arith.select %[[NOSECOND]], %[[BEFORE]], %[[MORE]]
// CHECK: %[[MINUS_ONE:.*]] = arith.constant -1.000000e+00 : f32
// CHECK: %[[INVERSE:.*]] = arith.select %[[NONE]], %[[MINUS_ONE]], %{{.*}} : f32
// CHECK: %[[INVERSES:.*]] = vector.broadcast %[[INVERSE]]
// CHECK: arith.mulf %[[SUM]], %[[INVERSES]]
// CHECK-NOT: arith.select %[[NONE]], %{{.*}} : vector
// MASKED-LABEL: mlafix.kernel @computed_{{[a-z]+}}(
// MASKED: arith.select %{{.*}}, %{{.*}}, %{{.*}} : vector<8xf32>
// MASKED: arith.select %{{.*}}, %{{.*}}, %{{.*}} : vector<8xf32>
// MASKED: arith.select %{{.*}}, %{{.*}}, %{{.*}} : vector<8xf32>
!row8 = memref<?x8xbf16, strided<[?, 1], offset: ?>>
!state8 = !mlafix.state<8, e>
!tile8 = tensor<8xf32, #mlafix.dim<8>>
mlafix.kernel @computed(%y: !row8 {mlafix.dims = ["n", "E"], mlafix.access = "write"},
                        %x: !row8 {mlafix.dims = ["n", "E"], mlafix.access = "read"}, %a: !lses {mlafix.dims = ["n"], mlafix.access = "read"},
                        %z: !row8 {mlafix.dims = ["n", "E"], mlafix.access = "read"}, %b: !lses {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !row8
  mlafix.forall (%t) in (%n) {
    %first = mlafix.load_state %x[%t] lse %a[%t] : !row8, !lses -> !state8
    %second = mlafix.load_state %z[%t] lse %b[%t] : !row8, !lses -> !state8
    %merged = mlafix.merge %first, %second : !state8
    %row = mlafix.payload %merged : !state8
    %square = arith.mulf %row, %row : !tile8
    mlafix.store %square, %y[%t] : !tile8, !row8
  }
}

// A merge of one state, whose payload is masked when it is loaded.
// CHECK-LABEL: mlafix.kernel @one_dense
// CHECK: %[[NONE:.*]] = arith.cmpf oeq, %{{.*}}, %{{.*}}
// CHECK: arith.divf
// CHECK: %[[MINUS_ZEROS:.*]] = arith.constant dense<-0.000000e+00> : vector<8xf32>
// CHECK: %[[ROW:.*]] = arith.select %[[NONE:.*]], %[[MINUS_ZEROS]], %{{.*}} : vector<8xf32>
// CHECK: %[[MINUS_ONE:.*]] = arith.constant -1.000000e+00 : f32
// CHECK: %[[FACTOR:.*]] = arith.select %[[NONE]], %[[MINUS_ONE]], %{{.*}} : f32
// CHECK: %[[FACTORS:.*]] = vector.broadcast %[[FACTOR]]
// CHECK: arith.mulf %[[ROW]], %[[FACTORS]]
// CHECK-NOT: arith.select %[[NONE]], %{{.*}} : vector
// CHECK: vector.store
mlafix.kernel @one(%y: !row8 {mlafix.dims = ["n", "E"], mlafix.access = "write"},
                   %x: !row8 {mlafix.dims = ["n", "E"], mlafix.access = "read"}, %a: !lses {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !row8
  mlafix.forall (%t) in (%n) {
    %state = mlafix.load_state %x[%t] lse %a[%t] : !row8, !lses -> !state8
    %row = mlafix.payload %state : !state8
    %square = arith.mulf %row, %row : !tile8
    mlafix.store %square, %y[%t] : !tile8, !row8
  }
}

// A merge of one state with a sink. The sink's payload is all zeros, so one zero is added for the whole row: -0.0 if
// the sink is empty, else +0.0.
// CHECK-LABEL: mlafix.kernel @sink_dense
// CHECK-DAG: %[[MINUS:.*]] = arith.constant -0.000000e+00 : f32
// CHECK: %[[LARGEST:.*]] = arith.maximumf
// CHECK-NEXT: %[[NONE:.*]] = arith.cmpf oeq, %[[LARGEST]]
// CHECK: %[[SIGN:.*]] = arith.select %{{.*}}, %[[MINUS]], %{{.*}} : f32
// CHECK: %[[LEFT:.*]] = arith.ori %{{.*}}, %[[NONE]]
// CHECK: %[[PAYLOAD:.*]] = arith.select %[[LEFT]], %{{.*}}, %{{.*}} : vector<8xf32>
// CHECK: %[[ADDED:.*]] = arith.select %[[NONE]], %{{.*}}, %[[SIGN]] : f32
// CHECK: %[[ALL:.*]] = vector.broadcast %[[ADDED]]
// CHECK: %[[WEIGHTED:.*]] = math.fma %{{.*}}, %[[PAYLOAD]], %[[ALL]]
// CHECK-NOT: math.fma {{.*}} : vector
// CHECK: arith.mulf %[[WEIGHTED]], %{{.*}} : vector<8xf32>
// CHECK-NOT: arith.select %[[NONE]], %{{.*}} : vector
// CHECK: vector.store
mlafix.kernel @sink(%y: !row8 {mlafix.dims = ["n", "E"], mlafix.access = "write"},
                    %x: !row8 {mlafix.dims = ["n", "E"], mlafix.access = "read"}, %a: !lses {mlafix.dims = ["n"], mlafix.access = "read"},
                    %logit: f32) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %y, %c0 : !row8
  mlafix.forall (%t) in (%n) {
    %state = mlafix.load_state %x[%t] lse %a[%t] : !row8, !lses -> !state8
    %zeros = mlafix.splat %zero : f32 -> !tile8
    %sink = mlafix.make_state %zeros lse %logit : !tile8 -> !state8
    %merged = mlafix.merge %state, %sink : !state8
    %row = mlafix.payload %merged : !state8
    %square = arith.mulf %row, %row : !tile8
    mlafix.store %square, %y[%t] : !tile8, !row8
  }
}

// A row that is only narrowed keeps the select. The select later becomes a select of words, which are fewer than the
// elements.
// CHECK-LABEL: mlafix.kernel @narrowed_dense
// CHECK: %[[LARGEST:.*]] = arith.maximumf
// CHECK-NEXT: %[[NONE:.*]] = arith.cmpf oeq, %[[LARGEST]]
// CHECK: %[[ROW:.*]] = arith.select %[[NONE]], %{{.*}} : vector<8xf32>
// CHECK: arith.truncf %[[ROW]]
mlafix.kernel @narrowed(%y: !row8 {mlafix.dims = ["n", "E"], mlafix.access = "write"},
                        %x: !row8 {mlafix.dims = ["n", "E"], mlafix.access = "read"}, %a: !lses {mlafix.dims = ["n"], mlafix.access = "read"},
                        %z: !row8 {mlafix.dims = ["n", "E"], mlafix.access = "read"}, %b: !lses {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !row8
  mlafix.forall (%t) in (%n) {
    %first = mlafix.load_state %x[%t] lse %a[%t] : !row8, !lses -> !state8
    %second = mlafix.load_state %z[%t] lse %b[%t] : !row8, !lses -> !state8
    %merged = mlafix.merge %first, %second : !state8
    mlafix.store_state %merged to %y[%t] : !state8, !row8
  }
}

// A mask that is unrelated to the factor stays.
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
