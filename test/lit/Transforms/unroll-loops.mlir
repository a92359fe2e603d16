// On a GPU a short loop over rows disappears, and any other has four rows in flight; its merges become one.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-unroll-loops{target=sm_90}),canonicalize)" | FileCheck %s
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-unroll-loops{target=x86-64-v3}),canonicalize)" | FileCheck %s --check-prefix=CPU

!rows = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>
!out = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
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
// The rest, one by one.
// CHECK: scf.for
// CHECK-NEXT: mlafix.load_state
// CHECK-NEXT: mlafix.merge
// CHECK-NEXT: scf.yield
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
// CHECK: %[[ONE:.*]] = arith.constant 1 : index
// A range that is empty by any number of rows has as many iterations as one that ends where it starts.
// CHECK: %[[END:.*]] = arith.maxsi %from, %to : index
// CHECK: %[[COUNT:.*]] = arith.subi %[[END]], %from
// CHECK: %[[REST:.*]] = arith.remsi %[[COUNT]], %c4
// CHECK: %[[WHOLE:.*]] = arith.subi %[[COUNT]], %[[REST]]
// CHECK: %[[MAIN:.*]] = arith.addi %from, %[[WHOLE]]
// CHECK: scf.for %{{.*}} = %from to %[[MAIN]] step %c4
// CHECK: scf.for %{{.*}} = %[[MAIN]] to %[[END]] step %[[ONE]]
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

// Steps and indices of 32 bits are counted first, in 64.
// CHECK-LABEL: @steps
// CHECK: arith.cmpi slt, %from, %to : i32
// CHECK: arith.divui
// CHECK: arith.index_castui %{{.*}} : i32 to index
// CHECK: %[[COUNT:.*]] = arith.select %{{.*}} : index
// CHECK: arith.remsi %[[COUNT]], %c4
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c4
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[COUNT]] step %c1
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
