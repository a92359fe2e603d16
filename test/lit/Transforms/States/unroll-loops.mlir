// On a GPU, a loop over rows that has few iterations is unrolled completely. Any other loop loads the rows of four
// iterations at once, and merges them by one merge.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-unroll-loops{target=sm_90}),canonicalize)" | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-unroll-loops{target=x86-64-v3}),canonicalize)" | FileCheck %s --check-prefix=CPU

!rows = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>
!out = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
!flags = memref<?x?xi32, strided<[?, ?], offset: ?>>
!state = !mlafix.state<64, e>

// CHECK-LABEL: @short
// CHECK-NOT: scf.for
// CHECK-COUNT-8: mlafix.load_state
// CHECK: mlafix.merge %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}} :
// CHECK-NOT: mlafix.merge
// CHECK: mlafix.store_state
// CPU-LABEL: @short
// CPU: scf.for
// CPU: mlafix.load_state
// CPU-NOT: mlafix.load_state
// CPU-LABEL: @unknown
mlafix.kernel @short(
    %out: !out {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %v: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"},
    %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %n = memref.dim %out, %c0 : !out
  mlafix.forall (%t) in (%n) {
    %e = mlafix.identity : !state
    %r = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %e) -> !state {
      %x = mlafix.load_state %v[%t, %k] lse %s[%t, %k] : !rows, !lses -> !state
      %m = mlafix.merge %acc, %x : !state
      scf.yield %m : !state
    }
    mlafix.store_state %r to %out[%t] : !state, !out
  }
}

// CHECK-LABEL: @unknown
// CHECK: scf.for
// CHECK-COUNT-4: mlafix.load_state
// CHECK: mlafix.merge %{{[a-z0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}} :
// CHECK-NEXT: scf.yield
// After the loop, the remaining iterations first load all their states, and then merge one state after the other.
// CHECK-NOT: mlafix.load_state
// CHECK: scf.if
// CHECK: %[[X:.*]] = mlafix.load_state %v[%{{.*}}] lse %s[%{{.*}}] : 
// CHECK: %[[Y:.*]] = mlafix.load_state %v[%{{.*}}] lse %s[%{{.*}}] if %[[TWO:[0-9]+]] : 
// CHECK: %[[Z:.*]] = mlafix.load_state %v[%{{.*}}] lse %s[%{{.*}}] if %[[THREE:[0-9]+]] : 
// CHECK: %[[A:.*]] = mlafix.merge %{{[0-9]+}}, %[[X]] :
// CHECK: scf.if %[[TWO]]
// CHECK-NEXT: %[[B:.*]] = mlafix.merge %[[A]], %[[Y]] :
// CHECK-NEXT: scf.if %[[THREE]]
// CHECK-NEXT: mlafix.merge %[[B]], %[[Z]] :
// CHECK-NEXT: scf.yield
// CHECK-NOT: mlafix.load_state
// CHECK: mlafix.store_state
mlafix.kernel @unknown(
    %out: !out {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %v: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"},
    %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !out
  %count = memref.dim %v, %c1 : !rows
  mlafix.forall (%t) in (%n) {
    %e = mlafix.identity : !state
    %r = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %e) -> !state {
      %x = mlafix.load_state %v[%t, %k] lse %s[%t, %k] : !rows, !lses -> !state
      %m = mlafix.merge %acc, %x : !state
      scf.yield %m : !state
    }
    mlafix.store_state %r to %out[%t] : !state, !out
  }
}

// CHECK-LABEL: @between
// If the end of the range is below its start, the loop has no iterations. So the end is raised to at least the start.
// CHECK: %[[END:.*]] = arith.maxsi %from, %to : index
// CHECK: %[[COUNT:.*]] = arith.subi %[[END]], %from
// CHECK: %[[REST:.*]] = arith.remsi %[[COUNT]], %c4
// CHECK: %[[WHOLE:.*]] = arith.subi %[[COUNT]], %[[REST]]
// CHECK: %[[MAIN:.*]] = arith.addi %from, %[[WHOLE]]
// CHECK: scf.for %{{.*}} = %from to %[[MAIN]] step %c4
// CHECK: %[[LEFT:.*]] = arith.subi %[[END]], %[[MAIN]]
// CHECK: %[[ANY:.*]] = arith.cmpi sgt, %[[LEFT]], %c0
// CHECK: scf.if %[[ANY]]
mlafix.kernel @between(
    %out: !out {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %v: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"},
    %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}, %from: index, %to: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !out
  mlafix.forall (%t) in (%n) {
    %e = mlafix.identity : !state
    %r = scf.for %k = %from to %to step %c1 iter_args(%acc = %e) -> !state {
      %x = mlafix.load_state %v[%t, %k] lse %s[%t, %k] : !rows, !lses -> !state
      %m = mlafix.merge %acc, %x : !state
      scf.yield %m : !state
    }
    mlafix.store_state %r to %out[%t] : !state, !out
  }
}

// If a loop has a step other than 1, or an index of 32 bits, its number of iterations is computed first, as an `index`.
// CHECK-LABEL: @steps
// CHECK: arith.cmpi slt, %from, %to : i32
// CHECK: arith.divui
// CHECK: arith.index_castui %{{.*}} : i32 to index
// CHECK: %[[COUNT:.*]] = arith.select %{{.*}} : index
// CHECK: arith.remsi %[[COUNT]], %c4
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c4
// CHECK: arith.subi %[[COUNT]], %{{[0-9]+}} : index
// CHECK: scf.if
mlafix.kernel @steps(
    %out: !out {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %v: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"},
    %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}, %from: i32, %to: i32) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : i32
  %n = memref.dim %out, %c0 : !out
  mlafix.forall (%t) in (%n) {
    %e = mlafix.identity : !state
    %r = scf.for %i = %from to %to step %c3 iter_args(%acc = %e) -> !state : i32 {
      %k = arith.index_cast %i : i32 to index
      %x = mlafix.load_state %v[%t, %k] lse %s[%t, %k] : !rows, !lses -> !state
      %m = mlafix.merge %acc, %x : !state
      scf.yield %m : !state
    }
    mlafix.store_state %r to %out[%t] : !state, !out
  }
}

// If the body does more than merge one state (here the loop carries two states), the remaining iterations stay a loop.
// CHECK-LABEL: @two
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: scf.if
mlafix.kernel @two(
    %out: !out {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %v: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"},
    %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !out
  %count = memref.dim %v, %c1 : !rows
  mlafix.forall (%t) in (%n) {
    %e = mlafix.identity : !state
    %r:2 = scf.for %k = %c0 to %count step %c1 iter_args(%a = %e, %b = %e) -> (!state, !state) {
      %x = mlafix.load_state %v[%t, %k] lse %s[%t, %k] : !rows, !lses -> !state
      %m = mlafix.merge %a, %x : !state
      scf.yield %m, %a : !state, !state
    }
    %both = mlafix.merge %r#0, %r#1 : !state
    mlafix.store_state %both to %out[%t] : !state, !out
  }
}

// If a loop stores to memory that it loads, the next iteration's loads wait for the store. Unrolling would only make
// the code longer, so the loop stays.
// CHECK-LABEL: @stores
// CHECK: scf.for %{{.*}} = %from to %to step %c3
// CHECK: mlafix.load %v
// CHECK: mlafix.store
// CHECK-NOT: mlafix.load
mlafix.kernel @stores(
    %out: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "write"}, %v: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"},
    %from: index, %to: index) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    scf.for %k = %from to %to step %c3 {
      %x = mlafix.load %v[%t, %k] : !rows -> tensor<64xf32, #mlafix.dim<64>>
      mlafix.store %x, %out[%t, %k] : tensor<64xf32, #mlafix.dim<64>>, !rows
    }
  }
}

// A loop stays if the condition of a store in it depends on a loaded row. A value that the loop carries counts as a
// loaded row.
// CHECK-LABEL: @asks
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c1
mlafix.kernel @asks(
    %flags: !flags {mlafix.dims = ["n", "k"], mlafix.access = "update"}, %v: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %v, %c0 : !rows
  %count = memref.dim %v, %c1 : !rows
  mlafix.forall (%t) in (%n) {
    scf.for %k = %c0 to %count step %c1 {
      %x = mlafix.load %v[%t, %k] : !rows -> tensor<64xf32, #mlafix.dim<64>>
      %sum = mlafix.reduce add %x : tensor<64xf32, #mlafix.dim<64>>
      %p = arith.cmpf ogt, %sum, %zero : f32
      scf.if %p {
        mlafix.store %one, %flags[%t, %k] : i32, !flags
      }
    }
  }
}

// If a store does not depend on a loaded row, the rows of the next iterations can be loaded before the store, so the
// loop is unrolled.
// CHECK-LABEL: @marks
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c4
// CHECK-COUNT-4: mlafix.load_state
mlafix.kernel @marks(
    %out: !out {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %flags: !flags {mlafix.dims = ["n", "k"], mlafix.access = "write"},
    %v: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"}, %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %n = memref.dim %out, %c0 : !out
  %count = memref.dim %v, %c1 : !rows
  mlafix.forall (%t) in (%n) {
    %e = mlafix.identity : !state
    %r = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %e) -> !state {
      %x = mlafix.load_state %v[%t, %k] lse %s[%t, %k] : !rows, !lses -> !state
      %m = mlafix.merge %acc, %x : !state
      mlafix.store %one, %flags[%t, %k] : i32, !flags
      scf.yield %m : !state
    }
    mlafix.store_state %r to %out[%t] : !state, !out
  }
}
