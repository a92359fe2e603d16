// The name of a base is bound like other names. A name may have a default. A dynamic dim may be bound, too.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=96,T=f16})" | FileCheck %s --check-prefixes=CHECK,DEFAULT
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=96,T=f16,B=2,k=4})" | FileCheck %s --check-prefixes=CHECK,BOUND
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=96,T=f16,B=10})" 2>&1 | FileCheck %s --check-prefix=BASE
// RUN: not %mlafix-opt %s --pass-pipeline="builtin.module(mlafix-specialize{bindings=D=96,T=f16,I=f32})" 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not sh -c "sed 's/B = .e., //' %s | %mlafix-opt --pass-pipeline='builtin.module(mlafix.kernel(mlafix-lower-states))'" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not sh -c "sed 's/B = .e., //' %s | %mlafix-opt --pass-pipeline='builtin.module(mlafix-specialize{bindings=D=96,T=f16})'" 2>&1 | FileCheck %s --check-prefix=NODEFAULT
// BASE: error: expected e or 2 for base 'B', got '10'
// KIND: error: expected i32, i64, i8 or u8 for 'I', since the body computes with its elements, got f32
// NAME: error: expected base "B" to be bound before states are lowered, got a name
// NODEFAULT: error: expected a base for 'B' of kernel 'sum', got no binding of it

!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
!ints = memref<?xi32, strided<[?], offset: ?>>
!state = !mlafix.state<"D", "B">

// CHECK-LABEL: mlafix.kernel @sum(
// DEFAULT-SAME: %x: memref<?x?x96xf16, strided<[?, ?, 1], offset: ?>>
// BOUND-SAME: %x: memref<?x4x96xf16, strided<[?, ?, 1], offset: ?>>
// CHECK-SAME: %lens: memref<?xi64,
// DEFAULT-SAME: bindings = {B = "e", D = 96 : i64, I = "i64", T = "f16"}
// BOUND-SAME: bindings = {B = "2", D = 96 : i64, I = "i64", T = "f16", k = 4 : i64}
// CHECK-SAME: defaults = {B = "e", I = "i64"}
mlafix.kernel @sum(
    %x: !rows {mlafix.dims = ["n", "k", "D"], mlafix.dtype = "T", mlafix.access = "update"},
    %lse: !lses {mlafix.dims = ["n", "k"], mlafix.access = "update"},
    %lens: !ints {mlafix.dims = ["n"], mlafix.dtype = "I", mlafix.access = "read"}) attributes {defaults = {B = "e", I = "i64"}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // A body that loads i64 from a tensor with an integer dtype variable works for integers of every width.
    // CHECK: mlafix.load %lens{{.*}} -> i64
    %len = mlafix.load %lens[%t] : !ints -> i64
    %j = arith.index_cast %len : i64 to index
    // DEFAULT: mlafix.load_state {{.*}} -> <96, e>
    // BOUND: mlafix.load_state {{.*}} -> <96, 2>
    %s = mlafix.load_state %x[%t, %j] lse %lse[%t, %j] : !rows, !lses -> !state
    mlafix.store_state %s to %x[%t, %c0] lse %lse[%t, %c0] : !state, !rows, !lses
  }
}
