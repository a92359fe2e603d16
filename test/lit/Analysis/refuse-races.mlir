// Races between rows are diagnosed during compilation. A counterexample is an error. An unproved property is a warning,
// at most once per kernel.
// RUN: %mlafix-opt %s --pass-pipeline="builtin.module(mlafix.kernel(mlafix-define-edge-cases,canonicalize,mlafix-prove{refuse=true}))" --verify-diagnostics -o /dev/null

!vec = memref<?xf32, strided<[?], offset: ?>>
!mat = memref<?x?xf32, strided<[?, ?], offset: ?>>
!ints = memref<?xi32, strided<[?], offset: ?>>

mlafix.kernel @neighbour(%x: !vec {mlafix.dims = ["n"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %next = arith.addi %t, %c1 : index
    %has = arith.cmpi slt, %next, %n : index
    // expected-error @below {{expected the rows of 'x' to be independent, got a read of x[1], which another row writes: for example n = 2, i = 0; read from a tensor that the kernel does not write}}
    %v = mlafix.load %x[%next] if %has : !vec -> f32
    // expected-note @below {{the other row's access}}
    mlafix.store %v, %x[%t] : f32, !vec
  }
}

// The kernel's author has declared the race as intended.
mlafix.kernel @allowed(%x: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %y: !vec {mlafix.dims = ["m"], mlafix.access = "update"}) attributes {allow = ["bounds", "races"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %x, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %next = arith.addi %t, %c1 : index
    %v = mlafix.load %x[%next] : !vec -> f32
    mlafix.store %v, %x[%t] : f32, !vec
    %half = arith.floordivsi %t, %c2 : index
    mlafix.store %v, %y[%half] : f32, !vec
  }
}

// The kernel works in place, but each row accesses only its own elements.
mlafix.kernel @in_place(%x: !vec {mlafix.dims = ["n"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !vec -> f32
    %w = arith.addf %v, %v : f32
    mlafix.store %w, %x[%t] : f32, !vec
  }
}

// Only existing elements count: a store past the end does nothing.
mlafix.kernel @three_of_four(%y: !vec {mlafix.dims = ["q"], mlafix.access = "update"}, %x: !mat {mlafix.dims = ["n", "H"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %n = memref.dim %x, %c0 : !mat
  %h = memref.dim %x, %c1 : !mat
  mlafix.forall (%t, %j) in (%n, %h) {
    %v = mlafix.load %x[%t, %j] : !mat -> f32
    %first = arith.muli %t, %c3 : index
    %at = arith.addi %first, %j : index
    // expected-error @below {{expected one row to write each element of 'y', got two that write y[3]: for example n = 2, H = 4, q = 4, i = 1, j = 0}}
    mlafix.store %v, %y[%at] : f32, !vec
  }
}

// The warning proposes mlafix.distinct, since a promise that the entries of `slots` differ would be enough, as in
// @promised. The store to `z` gets no second warning.
mlafix.kernel @scatter(%y: !vec {mlafix.dims = ["m"], mlafix.access = "update"}, %z: !vec {mlafix.dims = ["m"], mlafix.access = "update"},
                       %x: !vec {mlafix.dims = ["n"], mlafix.access = "read"}, %slots: !ints {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !vec -> f32
    %s = mlafix.load %slots[%t] : !ints -> i32
    %i = arith.index_cast %s : i32 to index
    // expected-warning @below {{expected one row to write each element of 'y', got rows that may write the same one: it depends on what is read from slots; mlafix.distinct %slots before the grid promises that its entries differ, if they do, allow = ["races"] of the kernel declares that rows do not meet, or may}}
    mlafix.store %v, %y[%i] : f32, !vec
    mlafix.store %v, %z[%i] : f32, !vec
  }
}
mlafix.kernel @promised(%y: !vec {mlafix.dims = ["m"], mlafix.access = "update"},
                       %x: !vec {mlafix.dims = ["n"], mlafix.access = "read"}, %slots: !ints {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !vec
  mlafix.distinct %slots : !ints
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !vec -> f32
    %s = mlafix.load %slots[%t] : !ints -> i32
    %i = arith.index_cast %s : i32 to index
    mlafix.store %v, %y[%i] : f32, !vec
  }
}

// If the index is half of an entry, the warning does not propose mlafix.distinct, since halves of distinct entries may
// be equal.
mlafix.kernel @halves(%y: !vec {mlafix.dims = ["m"], mlafix.access = "update"},
                      %x: !vec {mlafix.dims = ["n"], mlafix.access = "read"}, %slots: !ints {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %x, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !vec -> f32
    %s = mlafix.load %slots[%t] : !ints -> i32
    %i = arith.index_cast %s : i32 to index
    %half = arith.floordivsi %i, %c2 : index
    // expected-warning @below {{it depends on what is read from slots; mlafix.assume promises a condition that keeps rows apart, allow = ["races"] of the kernel}}
    mlafix.store %v, %y[%half] : f32, !vec
  }
}
mlafix.kernel @gather(%x: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %from: !ints {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %s = mlafix.load %from[%t] : !ints -> i32
    %i = arith.index_cast %s : i32 to index
    // expected-warning @below {{expected the rows of 'x' to be independent, got a read of what another row may write: it depends on what is read from from; mlafix.assume promises a condition that keeps rows apart}}
    %v = mlafix.load %x[%i] : !vec -> f32
    mlafix.store %v, %x[%t] : f32, !vec
  }
}

// Both loads are out of bounds for some sizes. Only the first one gets a warning.
mlafix.kernel @longer(%y: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !vec {mlafix.dims = ["m"], mlafix.access = "read"}, %z: !vec {mlafix.dims = ["k"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    // expected-warning @below {{expected every access of 'x' to be in bounds, got x[0]: for example n = 1, m = 0, i = 0; out of bounds a load gives zero and a store does nothing; mlafix.assume before the grid makes launches check the sizes, allow = ["bounds"] of the kernel declares that it is meant}}
    %v = mlafix.load %x[%t] : !vec -> f32
    %u = mlafix.load %z[%t] : !vec -> f32
    %w = arith.addf %v, %u : f32
    mlafix.store %w, %y[%t] : f32, !vec
  }
}
