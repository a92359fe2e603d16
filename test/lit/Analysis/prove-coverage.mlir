// Proves coverage: every element of an output is written, for any contents of memory.
// RUN: %mlafix-opt %s --canonicalize --mlafix-prove --split-input-file --verify-diagnostics -o /dev/null

!vec = memref<?xf32, strided<[?], offset: ?>>
!flags = memref<?xi1, strided<[?], offset: ?>>

// A loaded flag selects one of two branches, and both branches write the row.
// expected-remark @below {{out: coverage: proved}}
// expected-remark @below {{out: one writer: proved}}
// expected-remark @below {{out: bounds: proved}}
// expected-remark @below {{flags: independence: proved}}
// expected-remark @below {{flags: bounds: proved}}
mlafix.kernel @both_branches(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"},
                             %flags: !flags {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %flag = mlafix.load %flags[%t] : !flags -> i1
    scf.if %flag {
      mlafix.store %one, %out[%t] : f32, !vec
    } else {
      mlafix.store %zero, %out[%t] : f32, !vec
    }
  }
}

// expected-remark @below {{out: one writer: proved}}
// expected-remark @below {{out: bounds: proved}}
// expected-remark @below {{flags: independence: proved}}
// expected-remark @below {{flags: bounds: proved}}
mlafix.kernel @no_else(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"},
                       %flags: !flags {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %one = arith.constant 1.0 : f32
    %flag = mlafix.load %flags[%t] : !flags -> i1
    // expected-remark @below {{out: coverage: refuted: n = 1, what is read from flags is 0: out[0]}}
    mlafix.store %one, %out[%t] if %flag : f32, !vec
  }
}

// Rows below and above a threshold are written.
// expected-remark @below {{out: coverage: proved}}
// expected-remark @below {{out: one writer: proved}}
// expected-remark @below {{out: bounds: proved}}
mlafix.kernel @threshold(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %live: index {mlafix.at_most = "n"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %is_live = arith.cmpi slt, %t, %live : index
    %is_pad = arith.cmpi sge, %t, %live : index
    mlafix.store %one, %out[%t] if %is_live : f32, !vec
    mlafix.store %zero, %out[%t] if %is_pad : f32, !vec
  }
}

// expected-remark @below {{out: one writer: proved}}
// expected-remark @below {{out: bounds: proved}}
mlafix.kernel @threshold_off_by_one(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %live: index {mlafix.at_most = "n"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %is_live = arith.cmpi slt, %t, %live : index
    %is_pad = arith.cmpi sgt, %t, %live : index
    // expected-remark @below {{out: coverage: refuted: n = 1, live = 0: out[0]}}
    mlafix.store %one, %out[%t] if %is_live : f32, !vec
    mlafix.store %zero, %out[%t] if %is_pad : f32, !vec
  }
}

// A loop writes pairs of elements. If the number of elements is odd, the last one is left out.
// expected-remark @below {{out: one writer: proved}}
// expected-remark @below {{out: bounds: proved}}
mlafix.kernel @pairs(%out: memref<?x?xf32, strided<[?, ?], offset: ?>> {mlafix.dims = ["n", "l"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %out, %c0 : memref<?x?xf32, strided<[?, ?], offset: ?>>
  %l = memref.dim %out, %c1 : memref<?x?xf32, strided<[?, ?], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %half = arith.divui %l, %c2 : index
    scf.for %k = %c0 to %half step %c1 {
      %a = arith.addi %k, %k : index
      %b = arith.addi %a, %c1 : index
      // expected-remark @below {{out: coverage: refuted: n = 1, l = 1: out[0, 0]}}
      mlafix.store %zero, %out[%t, %a] : f32, memref<?x?xf32, strided<[?, ?], offset: ?>>
      mlafix.store %zero, %out[%t, %b] : f32, memref<?x?xf32, strided<[?, ?], offset: ?>>
    }
  }
}

!mat = memref<?x?xf32, strided<[?, ?], offset: ?>>

// Rows are written in reverse order, element by element. Conditions on a remainder and on a loaded value select the
// store.
// expected-remark @below {{out: coverage: proved}}
// expected-remark @below {{out: one writer: proved}}
// expected-remark @below {{out: bounds: proved}}
// expected-remark @below {{x: independence: proved}}
// expected-remark @below {{x: bounds: proved}}
mlafix.kernel @backwards(%out: !mat {mlafix.dims = ["n", "m"], mlafix.access = "write"}, %x: !mat {mlafix.dims = ["n", "m"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %n = memref.dim %out, %c0 : !mat
  %m = memref.dim %out, %c1 : !mat
  mlafix.forall (%t) in (%n) {
    %z = arith.constant 0.0 : f32
    %last = arith.subi %n, %c1 : index
    %reverse = arith.subi %last, %t : index
    scf.for %i = %c0 to %m step %c1 {
      %r = arith.remui %i, %c3 : index
      %p = arith.cmpi eq, %r, %c0 : index
      scf.if %p {
        mlafix.store %z, %out[%reverse, %i] : f32, !mat
      } else {
        %v = mlafix.load %x[%t, %i] : !mat -> f32
        %q = arith.cmpf oeq, %v, %z : f32
        mlafix.store %v, %out[%reverse, %i] if %q : f32, !mat
        scf.if %q {
        } else {
          mlafix.store %z, %out[%reverse, %i] : f32, !mat
        }
      }
    }
  }
}

// The row with j = 0 writes out[t] for all rows with the same t. If h = 0, the grid has no rows, so nothing is written.
// expected-remark @below {{out: one writer: proved}}
// expected-remark @below {{out: bounds: proved}}
// expected-remark @below {{x: independence: proved}}
// expected-remark @below {{x: bounds: proved}}
mlafix.kernel @first_of_row(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !mat {mlafix.dims = ["n", "h"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !mat
  %h = memref.dim %x, %c1 : !mat
  mlafix.forall (%t, %j) in (%n, %h) {
    %v = mlafix.load %x[%t, %j] : !mat -> f32
    %first = arith.cmpi eq, %j, %c0 : index
    // expected-remark @below {{out: coverage: refuted: n = 1, h = 0: out[0]}}
    mlafix.store %v, %out[%t] if %first : f32, !vec
  }
}

// The rows of the grid are those of segments, which need not cover all elements.
// expected-remark @below {{out: one writer: proved}}
// expected-remark @below {{out: bounds: proved}}
mlafix.kernel @segments(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %cu: memref<?xi32, strided<[1], offset: ?>> {mlafix.dims = ["b1"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.ragged_forall (%s, %t) in (%cu, %n) : memref<?xi32, strided<[1], offset: ?>> where {
    %p = arith.constant true
    mlafix.yield %p : i1
  } do {
    %v = arith.constant 0.0 : f32
    // expected-remark @below {{out: coverage: refuted: b1 = 0, n = 1: out[0]}}
    mlafix.store %v, %out[%t] : f32, !vec
  }
}
// Stores at constant indices write all three elements, or all but one.
// expected-remark @below {{out: coverage: proved}}
// expected-remark @below {{out: one writer: proved}}
// expected-remark @below {{out: bounds: proved}}
mlafix.kernel @numbered(%out: memref<?x3x2xf32, strided<[?, ?, ?], offset: ?>> {mlafix.dims = ["n", "three", "two"], mlafix.access = "write"},
    %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %out, %c0 : memref<?x3x2xf32, strided<[?, ?, ?], offset: ?>>
  mlafix.forall (%t, %j) in (%n, %c2) {
    mlafix.store %x, %out[%t, %c0, %j] : f32, memref<?x3x2xf32, strided<[?, ?, ?], offset: ?>>
    mlafix.store %x, %out[%t, %c2, %j] : f32, memref<?x3x2xf32, strided<[?, ?, ?], offset: ?>>
    mlafix.store %x, %out[%t, %c1, %j] : f32, memref<?x3x2xf32, strided<[?, ?, ?], offset: ?>>
  }
}
// expected-remark @below {{out: one writer: proved}}
// expected-remark @below {{out: bounds: proved}}
mlafix.kernel @numbered_but_one(%out: memref<?x3xf32, strided<[?, ?], offset: ?>> {mlafix.dims = ["n", "three"], mlafix.access = "write"}, %x: f32) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %out, %c0 : memref<?x3xf32, strided<[?, ?], offset: ?>>
  mlafix.forall (%t) in (%n) {
    // expected-remark @below {{out: coverage: refuted: n = 1: out[0, 1]}}
    mlafix.store %x, %out[%t, %c0] : f32, memref<?x3xf32, strided<[?, ?], offset: ?>>
    mlafix.store %x, %out[%t, %c2] : f32, memref<?x3xf32, strided<[?, ?], offset: ?>>
  }
}

// Row t writes its elements in steps of 7, beginning at element t mod 4096. 7 and 4096 have no common factor, so every
// element is written.
!rows = memref<?x4096xf32, strided<[?, ?], offset: ?>>

// expected-remark @below {{out: coverage: proved}}
// expected-remark @below {{out: one writer: proved}}
// expected-remark @below {{out: bounds: proved}}
mlafix.kernel @turned(%out: !rows {mlafix.dims = ["n", "4096"], mlafix.access = "write"}, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c4096 = arith.constant 4096 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    scf.for %i = %c0 to %c4096 step %c1 {
      %scaled = arith.muli %i, %c7 : index
      %moved = arith.addi %scaled, %t : index
      %at = arith.remui %moved, %c4096 : index
      mlafix.store %x, %out[%t, %at] : f32, !rows
    }
  }
}

// The proof gives up if it has to look at too many cases, and the answer says so.
// expected-remark @below {{out: one writer: proved}}
// expected-remark @below {{out: bounds: proved}}
mlafix.kernel @turned_twice(%out: !rows {mlafix.dims = ["n", "4096"], mlafix.access = "write"}, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %c4096 = arith.constant 4096 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    scf.for %i = %c0 to %c4096 step %c1 {
      scf.for %j = %c0 to %c3 step %c1 {
        %a = arith.muli %i, %c5 : index
        %b = arith.muli %j, %c3 : index
        %moved = arith.addi %a, %b : index
        %at = arith.remui %moved, %c4096 : index
        // expected-remark @below {{out: coverage: unknown: too many cases to look at}}
        mlafix.store %x, %out[%t, %at] : f32, !rows
      }
    }
  }
}

// -----

// 6 and 64 have a common factor, so steps of 6 leave out elements.
!rows = memref<?x64xf32, strided<[?, ?], offset: ?>>

// expected-remark @below {{out: one writer: proved}}
// expected-remark @below {{out: bounds: proved}}
mlafix.kernel @turned_in_steps(%out: !rows {mlafix.dims = ["n", "64"], mlafix.access = "write"}, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %c64 = arith.constant 64 : index
  %n = memref.dim %out, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    scf.for %i = %c0 to %c64 step %c1 {
      %scaled = arith.muli %i, %c6 : index
      %moved = arith.addi %scaled, %t : index
      %at = arith.remui %moved, %c64 : index
      // expected-remark @below {{out: coverage: refuted: n = 1: out[0, 1]}}
      mlafix.store %x, %out[%t, %at] : f32, !rows
    }
  }
}

!vec = memref<?xf32, strided<[?], offset: ?>>

// One of two comparisons of the same floats is true. For NaN, it is the second one.
// expected-remark @below {{out: coverage: proved}}
// expected-remark @below {{out: one writer: proved}}
// expected-remark @below {{out: bounds: proved}}
// expected-remark @below {{x: independence: proved}}
// expected-remark @below {{x: bounds: proved}}
mlafix.kernel @compared_twice(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %v = mlafix.load %x[%t] : !vec -> f32
    %above = arith.cmpf ogt, %v, %zero : f32
    %not_above = arith.cmpf uge, %zero, %v : f32
    mlafix.store %v, %out[%t] if %above : f32, !vec
    mlafix.store %zero, %out[%t] if %not_above : f32, !vec
  }
}

// For NaN, neither comparison is true.
// expected-remark @below {{out: one writer: proved}}
// expected-remark @below {{out: bounds: proved}}
// expected-remark @below {{x: independence: proved}}
// expected-remark @below {{x: bounds: proved}}
mlafix.kernel @neither(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %v = mlafix.load %x[%t] : !vec -> f32
    %above = arith.cmpf ogt, %v, %zero : f32
    %below = arith.cmpf ole, %v, %zero : f32
    // expected-remark @below {{out: coverage: refuted: n = 1, a comparison of floats is 0: out[0]}}
    mlafix.store %v, %out[%t] if %above : f32, !vec
    mlafix.store %zero, %out[%t] if %below : f32, !vec
  }
}

// One of the three comparisons is always true. The proofs relate only the first two, which compare the same two floats.
// They do not model the comparison of a value with itself, which is true for NaN, so coverage is unknown.
// expected-remark @below {{out: one writer: proved}}
// expected-remark @below {{out: bounds: proved}}
// expected-remark @below {{x: independence: proved}}
// expected-remark @below {{x: bounds: proved}}
mlafix.kernel @three(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %v = mlafix.load %x[%t] : !vec -> f32
    %above = arith.cmpf ogt, %v, %zero : f32
    %below = arith.cmpf ole, %v, %zero : f32
    %is_nan = arith.cmpf uno, %v, %v : f32
    // expected-remark @below {{out: coverage: unknown: it depends on a comparison of floats}}
    mlafix.store %v, %out[%t] if %above : f32, !vec
    mlafix.store %zero, %out[%t] if %below : f32, !vec
    mlafix.store %v, %out[%t] if %is_nan : f32, !vec
  }
}
