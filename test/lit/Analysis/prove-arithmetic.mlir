// The proofs treat a sum as linear if the sum cannot wrap around, because a launch check, a predicate or a remainder
// keeps its terms small. Also tests rows that quotients and remainders permute.
// RUN: %mlafix-opt %s --mlafix-define-edge-cases --canonicalize --mlafix-prove=exhaustive=3 --verify-diagnostics=only-expected -o /dev/null

!vec = memref<?xf32, strided<[?], offset: ?>>
!longs = memref<?xi64, strided<[?], offset: ?>>

// expected-remark @below {{out: coverage: proved}}
// expected-remark @below {{out: one writer: proved}}
mlafix.kernel @at_most(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !vec {mlafix.dims = ["n"], mlafix.access = "read"}, %m: index {mlafix.at_most = "n"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !vec -> f32
    %u = arith.addf %v, %v : f32
    %past = arith.addi %m, %c1 : index
    %is_first = arith.cmpi sle, %t, %m : index
    %is_last = arith.cmpi sge, %t, %past : index
    mlafix.store %v, %out[%t] if %is_first : f32, !vec
    mlafix.store %u, %out[%t] if %is_last : f32, !vec
  }
}

// A launch checks that the scalar is small.
// expected-remark @below {{out: coverage: proved}}
// expected-remark @below {{x: bounds: proved}}
mlafix.kernel @assumed(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !vec {mlafix.dims = ["m"], mlafix.access = "read"}, %k: i64) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  %m = memref.dim %x, %c0 : !vec
  %first = arith.index_cast %k : i64 to index
  %zero = arith.constant 0 : i64
  %low = arith.cmpi sge, %k, %zero : i64
  mlafix.assume %low, "k >= 0"
  %high = arith.cmpi sle, %first, %m : index
  mlafix.assume %high, "k <= m"
  %past = arith.addi %first, %n : index
  %fits = arith.cmpi sle, %past, %m : index
  mlafix.assume %fits, "k + n <= m"
  mlafix.forall (%t) in (%n) {
    %at = arith.addi %t, %first : index
    %v = mlafix.load %x[%at] : !vec -> f32
    mlafix.store %v, %out[%t] : f32, !vec
  }
}

// Nothing checks this scalar, so the sum may wrap around.
// expected-remark @below {{out: coverage: proved}}
mlafix.kernel @unchecked(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !vec {mlafix.dims = ["m"], mlafix.access = "read"}, %k: i64) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  %first = arith.index_cast %k : i64 to index
  mlafix.forall (%t) in (%n) {
    %at = arith.addi %t, %first : index
    // expected-remark @below {{x: bounds: unknown: it depends on the result of arith.addi}}
    %v = mlafix.load %x[%at] : !vec -> f32
    mlafix.store %v, %out[%t] : f32, !vec
  }
}

// If the sum wraps around, it is not the index of an element, so rows still access different elements.
// expected-remark @below {{y: one writer: proved}}
// expected-remark @below {{y: independence: proved}}
mlafix.kernel @part(%y: !vec {mlafix.dims = ["m"], mlafix.access = "update"}, %x: !vec {mlafix.dims = ["n"], mlafix.access = "read"}, %k: index) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %at = arith.addi %t, %k : index
    %v = mlafix.load %x[%t] : !vec -> f32
    // expected-remark @below {{y: bounds: unknown: it depends on the result of arith.addi}}
    %u = mlafix.load %y[%at] : !vec -> f32
    %w = arith.addf %u, %v : f32
    mlafix.store %w, %y[%at] : f32, !vec
  }
}

// A predicate keeps the sum small.
// expected-remark @below {{x: bounds: proved}}
mlafix.kernel @predicate(%out: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %x: !vec {mlafix.dims = ["m"], mlafix.access = "read"},
                         %slots: !longs {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !vec
  %m = memref.dim %x, %c0 : !vec
  %last = arith.subi %m, %c1 : index
  mlafix.forall (%t) in (%n) {
    %s = mlafix.load %slots[%t] : !longs -> i64
    %i = arith.index_cast %s : i64 to index
    %next = arith.addi %i, %c1 : index
    %low = arith.cmpi sge, %i, %c0 : index
    %high = arith.cmpi slt, %i, %last : index
    %in = arith.andi %low, %high : i1
    %v = mlafix.load %x[%next] if %in : !vec -> f32
    mlafix.store %v, %out[%t] : f32, !vec
  }
}

// The remainder of a 64-bit integer divided by 16, plus 1, is less than 17.
// expected-remark @below {{x: bounds: proved}}
mlafix.kernel @remainder(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %x: memref<17xf32, strided<[?], offset: ?>> {mlafix.dims = ["s"], mlafix.access = "read"},
                         %slots: !longs {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : i64
  %c16 = arith.constant 16 : i64
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %s = mlafix.load %slots[%t] : !longs -> i64
    %page = arith.floordivsi %s, %c16 : i64
    %whole = arith.muli %page, %c16 : i64
    %rest = arith.subi %s, %whole : i64
    %next = arith.addi %rest, %c1 : i64
    %at = arith.index_cast %next : i64 to index
    %v = mlafix.load %x[%at] : memref<17xf32, strided<[?], offset: ?>> -> f32
    mlafix.store %v, %out[%t] : f32, !vec
  }
}

// Rows are rotated within groups of 3.
// expected-remark @below {{y: coverage: proved}}
// expected-remark @below {{y: one writer: proved}}
// expected-remark @below {{y: bounds: proved}}
mlafix.kernel @turn(%y: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %n = memref.dim %y, %c0 : !vec
  %over = arith.remui %n, %c3 : index
  %is_whole = arith.cmpi eq, %over, %c0 : index
  mlafix.assume %is_whole, "n % 3 == 0"
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !vec -> f32
    %group = arith.floordivsi %t, %c3 : index
    %first = arith.muli %group, %c3 : index
    %next = arith.addi %t, %c1 : index
    %place = arith.remui %next, %c3 : index
    %at = arith.addi %first, %place : index
    mlafix.store %v, %y[%at] : f32, !vec
  }
}

// Rows are rotated within groups of 128 by a number that a launch passes. Unlike in @turn, the remainder is computed
// before the quotient.
// expected-remark @below {{y: coverage: proved}}
// expected-remark @below {{y: one writer: proved}}
// expected-remark @below {{y: bounds: proved}}
mlafix.kernel @turn_by(%y: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !vec {mlafix.dims = ["n"], mlafix.access = "read"}, %k: index {mlafix.at_most = "n"}) {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %n = memref.dim %y, %c0 : !vec
  %over = arith.remui %n, %c128 : index
  %is_whole = arith.cmpi eq, %over, %c0 : index
  mlafix.assume %is_whole, "n % 128 == 0"
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !vec -> f32
    %next = arith.addi %t, %k : index
    %place = arith.remui %next, %c128 : index
    %group = arith.floordivsi %t, %c128 : index
    %first = arith.muli %group, %c128 : index
    %at = arith.addi %first, %place : index
    mlafix.store %v, %y[%at] : f32, !vec
  }
}

// A transposition of two by three elements, with divisions by several numbers.
// expected-remark @below {{y: coverage: proved}}
// expected-remark @below {{y: one writer: proved}}
// expected-remark @below {{y: bounds: proved}}
mlafix.kernel @transpose(%y: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c6 = arith.constant 6 : index
  %n = memref.dim %y, %c0 : !vec
  %over = arith.remui %n, %c6 : index
  %is_whole = arith.cmpi eq, %over, %c0 : index
  mlafix.assume %is_whole, "n % 6 == 0"
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !vec -> f32
    %group = arith.floordivsi %t, %c6 : index
    %first = arith.muli %group, %c6 : index
    %row = arith.remui %t, %c2 : index
    %rows = arith.muli %row, %c3 : index
    %in_group = arith.remui %t, %c6 : index
    %column = arith.floordivsi %in_group, %c2 : index
    %place = arith.addi %rows, %column : index
    %at = arith.addi %first, %place : index
    mlafix.store %v, %y[%at] : f32, !vec
  }
}

// A wrong rotation of groups of 3, with remainders by 2 instead of 3: one element of each group is written twice, and
// another one is left out.
mlafix.kernel @fold(%y: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %n = memref.dim %y, %c0 : !vec
  %over = arith.remui %n, %c3 : index
  %is_whole = arith.cmpi eq, %over, %c0 : index
  mlafix.assume %is_whole, "n % 3 == 0"
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !vec -> f32
    %group = arith.floordivsi %t, %c3 : index
    %first = arith.muli %group, %c3 : index
    %next = arith.addi %t, %c1 : index
    %place = arith.remui %next, %c2 : index
    %at = arith.addi %first, %place : index
    // expected-remark @below {{y: coverage: refuted: n = 3: y[2]}}
    // expected-remark @below {{y: one writer: refuted: n = 3, i = 2: y[1]}}
    mlafix.store %v, %y[%at] : f32, !vec
  }
}
