// Tests every fold, and ops that must not fold.
// RUN: %mlafix-opt %s --canonicalize --split-input-file | FileCheck %s

!rows = memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
!state = !mlafix.state<"D", e>

// CHECK-LABEL: @identities_drop_out
mlafix.kernel @identities_drop_out(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"},
    %lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t, %h) in (%n, %n) {
    // CHECK: %[[A:.*]] = mlafix.load_state
    // CHECK-NEXT: mlafix.store_state %[[A]]
    %a = mlafix.load_state %x[%t, %h] lse %lse[%h, %t] : !rows, !lses -> !state
    %e = mlafix.identity : !state
    %m = mlafix.merge %e, %a, %e : !state
    mlafix.store_state %m to %out[%t, %h] : !state, !rows
  }
}

// CHECK-LABEL: @only_identities
mlafix.kernel @only_identities(%out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t, %h) in (%n, %n) {
    // CHECK: %[[E:.*]] = mlafix.identity
    // CHECK-NEXT: mlafix.store_state %[[E]]
    %e = mlafix.identity : !state
    %m = mlafix.merge %e, %e : !state
    mlafix.store_state %m to %out[%t, %h] : !state, !rows
  }
}

// CHECK-LABEL: @nested_merges_flatten
mlafix.kernel @nested_merges_flatten(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"},
    %lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t, %h) in (%n, %n) {
    // CHECK: %[[A:.*]] = mlafix.load_state %x[%[[T:.*]], %[[H:.*]]] lse
    %a = mlafix.load_state %x[%t, %h] lse %lse[%h, %t] : !rows, !lses -> !state
    // CHECK: %[[B:.*]] = mlafix.load_state %x[%[[H]], %[[T]]] lse
    %b = mlafix.load_state %x[%h, %t] lse %lse[%t, %h] : !rows, !lses -> !state
    // CHECK: %[[C:.*]] = mlafix.load_state %x[%[[T]], %[[T]]] lse
    %c = mlafix.load_state %x[%t, %t] lse %lse[%t, %t] : !rows, !lses -> !state
    // CHECK-NEXT: %[[M:.*]] = mlafix.merge %[[A]], %[[B]], %[[C]]
    // CHECK-NEXT: mlafix.store_state %[[M]]
    %ab = mlafix.merge %a, %b : !state
    %m = mlafix.merge %ab, %c : !state
    mlafix.store_state %m to %out[%t, %h] : !state, !rows
    // A merge whose result has another use stays.
    // CHECK: %[[SHARED:.*]] = mlafix.merge %[[B]], %[[C]]
    // CHECK: mlafix.merge %[[SHARED]], %[[A]]
    %bc = mlafix.merge %b, %c : !state
    %all = mlafix.merge %bc, %a : !state
    mlafix.store_state %bc to %out[%h, %t] : !state, !rows
    mlafix.store_state %all to %out[%h, %h] : !state, !rows
  }
}

// CHECK-LABEL: @masks
mlafix.kernel @masks(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"},
    %lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "read"}, %p: i1, %q: i1) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t, %h) in (%n, %n) {
    %true = arith.constant true
    %false = arith.constant false
    // A mask of a load becomes the load's predicate. A mask of a mask becomes one mask with a conjunction.
    // CHECK: %[[PQ:.*]] = arith.andi %p, %q
    // CHECK-NEXT: %[[A:.*]] = mlafix.load_state %x{{.*}} if %[[PQ]]
    // CHECK-NEXT: mlafix.store_state %[[A]]
    %a = mlafix.load_state %x[%t, %h] lse %lse[%h, %t] : !rows, !lses -> !state
    %ap = mlafix.mask %a, %p : !state
    %apq = mlafix.mask %ap, %q : !state
    mlafix.store_state %apq to %out[%t, %h] : !state, !rows
    // A load is not moved across a store, since the store may change what the load reads.
    // CHECK: %[[B:.*]] = mlafix.load_state %x
    // CHECK-NOT: if
    // CHECK: mlafix.store_state %[[B]]
    // CHECK: %[[BP:.*]] = mlafix.mask %[[B]], %p
    // CHECK: mlafix.store_state %[[BP]]
    %b = mlafix.load_state %x[%h, %t] lse %lse[%t, %h] : !rows, !lses -> !state
    mlafix.store_state %b to %out[%h, %t] : !state, !rows
    %bp = mlafix.mask %b, %p : !state
    mlafix.store_state %bp to %out[%h, %h] : !state, !rows
    // CHECK: %[[C:.*]] = mlafix.load_state %x[%{{.*}}, %{{.*}}] lse %lse[%{{.*}}] : memref
    // CHECK-NEXT: mlafix.store_state %[[C]]
    %c = mlafix.load_state %x[%t, %t] lse %lse[%t, %t] : !rows, !lses -> !state
    %ctrue = mlafix.mask %c, %true : !state
    mlafix.store_state %ctrue to %out[%t, %h] : !state, !rows
    // CHECK: %[[E:.*]] = mlafix.identity
    // CHECK-NEXT: mlafix.store_state %[[E]]
    %d = mlafix.load_state %x[%t, %t] lse %lse[%t, %t] : !rows, !lses -> !state
    %dfalse = mlafix.mask %d, %false : !state
    mlafix.store_state %dfalse to %out[%t, %h] : !state, !rows
    // CHECK: %[[E2:.*]] = mlafix.identity
    // CHECK-NEXT: mlafix.store_state %[[E2]]
    %e = mlafix.identity : !state
    %ep = mlafix.mask %e, %p : !state
    mlafix.store_state %ep to %out[%t, %h] : !state, !rows
  }
}

// CHECK-LABEL: @constant_predicates
mlafix.kernel @constant_predicates(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"},
    %lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t, %h) in (%n, %n) {
    %true = arith.constant true
    %false = arith.constant false
    %one = arith.constant 1.0 : f32
    // CHECK: %[[A:.*]] = mlafix.load_state %x[%{{.*}}, %{{.*}}] lse %lse[%{{.*}}] : memref
    %a = mlafix.load_state %x[%t, %h] lse %lse[%h, %t] if %true : !rows, !lses -> !state
    // CHECK-NEXT: mlafix.store_state %[[A]] to %out[%{{.*}}] :
    mlafix.store_state %a to %out[%t, %h] if %true : !state, !rows
    mlafix.store_state %a to %out[%h, %h] if %false : !state, !rows
    // CHECK-NEXT: %[[E:.*]] = mlafix.identity
    // CHECK-NEXT: mlafix.store_state %[[E]]
    %b = mlafix.load_state %x[%t, %h] lse %lse[%h, %t] if %false : !rows, !lses -> !state
    mlafix.store_state %b to %out[%t, %h] : !state, !rows
    // CHECK-NEXT: %[[V:.*]] = mlafix.load %lse[%{{.*}}] : memref
    %v = mlafix.load %lse[%h, %t] if %true else %one : !lses -> f32
    // CHECK-NEXT: mlafix.store %[[V]], %lse[%{{.*}}] : f32
    mlafix.store %v, %lse[%h, %t] if %true : f32, !lses
    // CHECK-NEXT: }
    mlafix.store %v, %lse[%t, %t] if %false : f32, !lses
  }
}

// CHECK-LABEL: @rebase_to_its_own_base
mlafix.kernel @rebase_to_its_own_base(
    %out: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "write"},
    %x: !rows {mlafix.dims = ["n", "H", "D"], mlafix.access = "read"},
    %lse: !lses {mlafix.dims = ["H", "n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t, %h) in (%n, %n) {
    // CHECK: %[[A:.*]] = mlafix.load_state
    // CHECK-NEXT: mlafix.store_state %[[A]]
    %a = mlafix.load_state %x[%t, %h] lse %lse[%h, %t] : !rows, !lses -> !state
    %b = mlafix.rebase %a : !state -> !state
    mlafix.store_state %b to %out[%t, %h] : !state, !rows
  }
}

// Grids with an extent of 1 or 0 stay, since a grid is not a loop.
// CHECK-LABEL: @extents_stay
mlafix.kernel @extents_stay() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: mlafix.forall (%{{.*}}, %{{.*}}) in (%c1, %c0)
  mlafix.forall (%t, %h) in (%c1, %c0) {}
}

// -----

!rows = memref<?xf32, strided<[?], offset: ?>>

// CHECK-LABEL: @a_tensor_is_the_same_as_itself
mlafix.kernel @a_tensor_is_the_same_as_itself(
    %x: !rows {mlafix.dims = ["n"], mlafix.access = "update"},
    %y: !rows {mlafix.dims = ["n"], mlafix.access = "update"},
    %f: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // CHECK: %[[SAME:.*]] = mlafix.same_tensor %x, %y
    // CHECK-NEXT: mlafix.store %f, %x[%{{.*}}] :
    // CHECK-NEXT: mlafix.store %f, %y[%{{.*}}] if %[[SAME]]
    %always = mlafix.same_tensor %x, %x : !rows, !rows
    %perhaps = mlafix.same_tensor %x, %y : !rows, !rows
    mlafix.store %f, %x[%t] if %always : f32, !rows
    mlafix.store %f, %y[%t] if %perhaps : f32, !rows
  }
}

// -----

!rows = memref<?x?xbf16, strided<[?, 1], offset: ?>>
!state = !mlafix.state<"D", e>
!sink = !mlafix.state<"D", e, sink>

// A merge of one state stays if it changes the type to that of a state with a sink.
// CHECK-LABEL: @states_that_may_have_a_sink
mlafix.kernel @states_that_may_have_a_sink(%out: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %logit: f32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // CHECK: %[[E:.*]] = mlafix.identity : <"D", e, sink>
    // CHECK: mlafix.store_state %[[E]]
    %e = mlafix.identity : !state
    %none = mlafix.merge %e, %e : (!state, !state) -> !sink
    mlafix.store_state %none to %out[%t] : !sink, !rows
    // CHECK: %[[S:.*]] = mlafix.make_state
    // CHECK: %[[M:.*]] = mlafix.merge %[[S]] : (!mlafix.state<"D", e>) -> !mlafix.state<"D", e, sink>
    // CHECK: mlafix.store_state %[[M]]
    %zeros = mlafix.splat %logit : f32 -> tensor<?xf32, #mlafix.dim<"D">>
    %s = mlafix.make_state %zeros lse %logit : tensor<?xf32, #mlafix.dim<"D">> -> !state
    %m = mlafix.merge %s, %e : (!state, !state) -> !sink
    mlafix.store_state %m to %out[%t] : !sink, !rows
  }
}
