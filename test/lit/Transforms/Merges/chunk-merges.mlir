// A running merge whose length the launch knows becomes a loop over chunks. Each state of a chunk is loaded only if it
// exists.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-chunk-merges{machine=chunkIterations=2,weighedOnceElements=64}),canonicalize)" | FileCheck %s
// For short rows, the chunks are merged one after the other, without a first loop for the largest lse.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-chunk-merges{machine=chunkIterations=2,weighedOnceElements=65}),canonicalize)" | FileCheck %s --check-prefix=SHORT

!rows = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>
!out = memref<?x64xbf16, strided<[?, 1], offset: ?>>
!lses = memref<?x?xf32, strided<[?, ?], offset: ?>>
!ints = memref<?xi32, strided<[1], offset: ?>>
!state = !mlafix.state<64, e>

// CHECK-LABEL: @dim
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[COUNT:.*]] = memref.dim %v, %[[C1]]
// CHECK: %[[NONE:.*]] = mlafix.identity
// A first loop finds the largest lse. The second loop weighs each state relative to it.
// CHECK: %[[LEAST:.*]] = mlafix.max_of %[[NONE]]
// CHECK: %[[MOST:.*]] = mlafix.merge_loop %[[I:.*]] = %[[C0]] to %[[COUNT]] step 2 init(%[[LEAST]]) : f32 {
// CHECK: %[[M0:.*]] = mlafix.max_of %
// CHECK: %[[M1:.*]] = mlafix.max_of %
// CHECK: %[[BOTH:.*]] = arith.maximumf %[[M0]], %[[M1]]
// CHECK: mlafix.yield %[[BOTH]]
// CHECK: %[[FIRST:.*]] = mlafix.reference %[[MOST]]
// CHECK: %[[ALL:.*]] = mlafix.merge_loop to_first %[[K:.*]] = %[[C0]] to %[[COUNT]] step 2 init(%[[FIRST]]) : !mlafix.state<64, e> {
// CHECK: %[[LEFT:.*]] = arith.subi %[[COUNT]], %[[K]]
// CHECK: %[[HAS0:.*]] = arith.cmpi sgt, %[[LEFT]], %[[C0]]
// CHECK: %[[P0:.*]] = mlafix.load_state %v[%{{.*}}, %[[K]]] lse %s[%{{.*}}, %[[K]]] if %[[HAS0]]
// CHECK: %[[HAS1:.*]] = arith.cmpi sgt, %[[LEFT]], %[[C1]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[K]], %[[C1]]
// CHECK: %[[P1:.*]] = mlafix.load_state %v[%{{.*}}, %[[NEXT]]] lse %s[%{{.*}}, %[[NEXT]]] if %[[HAS1]]
// CHECK: %[[CHUNK:.*]] = mlafix.merge to_first %[[FIRST]], %[[P0]], %[[P1]]
// CHECK: mlafix.yield %[[CHUNK]]
// CHECK: mlafix.store_state %[[ALL]]
// SHORT-LABEL: @dim
// SHORT-NOT: mlafix.reference
// SHORT: mlafix.merge_loop %{{.*}} : !mlafix.state<64, e> {
// SHORT: %[[PART:.*]] = mlafix.merge %{{.*}}, %{{.*}} :
// SHORT: mlafix.yield %[[PART]]
mlafix.kernel @dim(
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

// The states of this loop are made from an lse and not loaded. A state whose iteration does not exist is masked, and
// its lse is not loaded.
// CHECK-LABEL: @made
// CHECK: mlafix.merge_loop
// CHECK: mlafix.load %s[%{{.*}}, %{{.*}}] if
// CHECK: mlafix.make_state
// CHECK: mlafix.mask
// CHECK: mlafix.yield
mlafix.kernel @made(
    %out: !out {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}, %count: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !out
  mlafix.forall (%t) in (%n) {
    %e = mlafix.identity : !state
    %r = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %e) -> !state {
      %l = mlafix.load %s[%t, %k] : !lses -> f32
      %row = mlafix.splat %l : f32 -> tensor<64xf32, #mlafix.dim<64>>
      %x = mlafix.make_state %row lse %l : tensor<64xf32, #mlafix.dim<64>> -> !state
      %m = mlafix.merge %x, %acc : !state
      scf.yield %m : !state
    }
    mlafix.store_state %r to %out[%t] : !state, !out
  }
}

// The initial state of the loop has a weight, too, so the search for the largest lse starts with the lse of this state.
// CHECK-LABEL: @begun
// CHECK: %[[INIT:.*]] = mlafix.load_state
// CHECK: %[[LEAST:.*]] = mlafix.max_of %[[INIT]]
// CHECK: %[[MOST:.*]] = mlafix.merge_loop {{.*}} init(%[[LEAST]]) : f32
// CHECK: %[[REFERENCE:.*]] = mlafix.reference %[[MOST]]
// CHECK: %[[FIRST:.*]] = mlafix.merge to_first %[[REFERENCE]], %[[INIT]]
// CHECK: mlafix.merge_loop to_first {{.*}} init(%[[FIRST]])
// CHECK: mlafix.merge to_first %[[REFERENCE]], %
mlafix.kernel @begun(
    %out: !out {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %v: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"},
    %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}, %count: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !out
  mlafix.forall (%t) in (%n) {
    %one = mlafix.load_state %v[%t, %c0] lse %s[%t, %c0] : !rows, !lses -> !state
    %r = scf.for %k = %c1 to %count step %c1 iter_args(%acc = %one) -> !state {
      %x = mlafix.load_state %v[%t, %k] lse %s[%t, %k] : !rows, !lses -> !state
      %m = mlafix.merge %acc, %x : !state
      scf.yield %m : !state
    }
    mlafix.store_state %r to %out[%t] : !state, !out
  }
}

// The length is loaded from memory, so the launch does not know it.
// CHECK-LABEL: @from_memory
// CHECK-NOT: merge_loop
// CHECK: scf.for
mlafix.kernel @from_memory(
    %out: !out {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %v: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"},
    %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}, %counts: !ints {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !out
  mlafix.forall (%t) in (%n) {
    %e = mlafix.identity : !state
    %c = mlafix.load %counts[%t] : !ints -> i32
    %count = arith.index_cast %c : i32 to index
    %r = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %e) -> !state {
      %x = mlafix.load_state %v[%t, %k] lse %s[%t, %k] : !rows, !lses -> !state
      %m = mlafix.merge %acc, %x : !state
      scf.yield %m : !state
    }
    mlafix.store_state %r to %out[%t] : !state, !out
  }
}

// The launch knows an integer argument. A boolean is not an extent, even after a cast.
// RUN: sed 's/%%number: i32/%%number: i1/; s/%%number : i32/%%number : i1/; s/512/64/g' %s | %mlafix-opt --pass-pipeline="builtin.module(mlafix.kernel(mlafix-chunk-merges{machine=chunkIterations=2,weighedOnceElements=64}),canonicalize)" | FileCheck %s --check-prefix=STAYS
// CHECK-LABEL: @integer
// CHECK: mlafix.merge_loop
// STAYS-LABEL: @integer
// STAYS-NOT: merge_loop
// STAYS: scf.for
mlafix.kernel @integer(
    %out: !out {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %v: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"},
    %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}, %number: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !out
  %count = arith.index_cast %number : i32 to index
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

// The loop stores the running state of each iteration, so the order of the merges must stay.
// CHECK-LABEL: @looked_at
// CHECK-NOT: merge_loop
// CHECK: scf.for
mlafix.kernel @looked_at(
    %out: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "write"}, %v: !rows {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"},
    %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !rows
  %count = memref.dim %v, %c1 : !rows
  mlafix.forall (%t) in (%n) {
    %e = mlafix.identity : !state
    %r = scf.for %k = %c0 to %count step %c1 iter_args(%acc = %e) -> !state {
      %x = mlafix.load_state %v[%t, %k] lse %s[%t, %k] : !rows, !lses -> !state
      %m = mlafix.merge %acc, %x : !state
      mlafix.store_state %m to %out[%t, %k] : !state, !rows
      scf.yield %m : !state
    }
  }
}

// Eight iterations are too few for a loop over chunks, except for rows of 2 KB.
// CHECK-LABEL: @wide
// CHECK: mlafix.merge_loop
// STAYS-LABEL: @wide
// STAYS-NOT: merge_loop
// STAYS: scf.for
!wide = memref<?x?x512xf32, strided<[?, ?, 1], offset: ?>>
!wide_out = memref<?x512xf32, strided<[?, 1], offset: ?>>
!wide_state = !mlafix.state<512, e>
mlafix.kernel @wide(
    %out: !wide_out {mlafix.dims = ["n", "D"], mlafix.access = "write"}, %v: !wide {mlafix.dims = ["n", "k", "D"], mlafix.access = "read"},
    %s: !lses {mlafix.dims = ["n", "k"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %n = memref.dim %out, %c0 : !wide_out
  mlafix.forall (%t) in (%n) {
    %e = mlafix.identity : !wide_state
    %r = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %e) -> !wide_state {
      %x = mlafix.load_state %v[%t, %k] lse %s[%t, %k] : !wide, !lses -> !wide_state
      %m = mlafix.merge %acc, %x : !wide_state
      scf.yield %m : !wide_state
    }
    mlafix.store_state %r to %out[%t] : !wide_state, !wide_out
  }
}
