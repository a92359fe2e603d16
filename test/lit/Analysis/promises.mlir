// Tests the promises of authors. A launch checks promises about sizes and scalars. Nothing checks the other promises.
// The proofs rely on them, too, and report this ("promised").
// RUN: %mlafix-opt %s --mlafix-define-edge-cases --canonicalize --mlafix-prove --verify-diagnostics=only-expected -o /dev/null
// RUN: %mlafix-opt %s --mlafix-define-edge-cases --canonicalize --mlafix-guard-bounds | FileCheck %s

!vec = memref<?xf32, strided<[?], offset: ?>>
!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
!pages = memref<?x16x?xf32, strided<[?, ?, 1], offset: ?>>
!ints = memref<?xi32, strided<[?], offset: ?>>

// A promise about sizes and scalars. The access is proved, since a launch checks the promise.
// CHECK-LABEL: @sizes
// CHECK: mlafix.assume %{{.+}}, "n <= m and 0 <= k < m - n"
// CHECK-NOT: ult
// expected-remark @below {{out: coverage: proved}}
// expected-remark @below {{out: one writer: proved}}
// expected-remark @below {{out: bounds: proved}}
// expected-remark @below {{x: bounds: proved}}
mlafix.kernel @sizes(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !vec {mlafix.dims = ["m"], mlafix.access = "read"}, %k: i32) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  %m = memref.dim %x, %c0 : !vec
  %offset = arith.index_cast %k : i32 to index
  %room = arith.subi %m, %n : index
  %fits = arith.cmpi sle, %n, %m : index
  %low = arith.cmpi sge, %offset, %c0 : index
  %high = arith.cmpi slt, %offset, %room : index
  %inside = arith.andi %low, %high : i1
  %all = arith.andi %fits, %inside : i1
  mlafix.assume %all, "n <= m and 0 <= k < m - n"
  mlafix.forall (%t) in (%n) {
    %i = arith.addi %t, %offset : index
    %v = mlafix.load %x[%i] : !vec -> f32
    mlafix.store %v, %out[%t] : f32, !vec
  }
}

// A promise about the contents of a table. The bounds of accesses after it are promised. Nothing checks the promise, so
// these accesses keep their guards.
// CHECK-LABEL: @entries
// CHECK-NOT: mlafix.assume
// CHECK: ult
// CHECK: mlafix.load %y[%{{.+}}] if
// CHECK: ult
// CHECK: mlafix.load %x[%{{.+}}] if
// expected-remark @below {{table: bounds: proved}}
mlafix.kernel @entries(%out: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %x: !vec {mlafix.dims = ["m"], mlafix.access = "read"},
                       %y: !vec {mlafix.dims = ["m"], mlafix.access = "read"}, %table: !ints {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  %m = memref.dim %x, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %s = mlafix.load %table[%t] : !ints -> i32
    %i = arith.index_cast %s : i32 to index
    // expected-remark @below {{y: bounds: unknown: it depends on what is read from table}}
    %u = mlafix.load %y[%i] : !vec -> f32
    %low = arith.cmpi sge, %i, %c0 : index
    %high = arith.cmpi slt, %i, %m : index
    %inside = arith.andi %low, %high : i1
    mlafix.assume %inside, "0 <= table[t] < m"
    // expected-remark @below {{x: bounds: promised: the kernel assumes 0 <= table[t] < m}}
    %v = mlafix.load %x[%i] : !vec -> f32
    %w = arith.addf %u, %v : f32
    mlafix.store %w, %out[%t] : f32, !vec
  }
}

// With `bounds = "prove"`, the kernel asks for no guards, so none is added.
// CHECK-LABEL: @trusted
// CHECK-NOT: mlafix.{{assume|print}}
// CHECK-NOT: ult
// CHECK: mlafix.load %x[%{{.+}}] : memref
// CHECK-NOT: mlafix.print
// expected-remark @below {{table: bounds: proved}}
mlafix.kernel @trusted(%out: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %x: !vec {mlafix.dims = ["m"], mlafix.access = "read"},
                       %table: !ints {mlafix.dims = ["n"], mlafix.access = "read"}) attributes {bounds = "prove"} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  %m = memref.dim %x, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %s = mlafix.load %table[%t] : !ints -> i32
    %i = arith.index_cast %s : i32 to index
    %low = arith.cmpi sge, %i, %c0 : index
    %high = arith.cmpi slt, %i, %m : index
    %inside = arith.andi %low, %high : i1
    mlafix.assume %inside, "0 <= table[t] < m"
    // mlafix-guard-bounds erases the print.
    mlafix.print "{} of {}", %i, %m : index, index
    // expected-remark @below {{x: bounds: promised: the kernel assumes 0 <= table[t] < m}}
    %v = mlafix.load %x[%i] : !vec -> f32
    mlafix.store %v, %out[%t] : f32, !vec
  }
}

// A scatter with one writer: the table names each slot once. A slot is used as an index, or as a page and a place in
// the page. The bounds are not proved.
// CHECK-LABEL: @scatter
// CHECK-NOT: mlafix.distinct
// expected-remark @below {{slots: bounds: proved}}
mlafix.kernel @scatter(%cache: !pages {mlafix.dims = ["pages", "page", "D"], mlafix.access = "update"}, %lse: !vec {mlafix.dims = ["m"], mlafix.access = "update"},
                       %x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "read"}, %slots: !ints {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.distinct %slots : !ints
  mlafix.forall (%t) in (%n) {
    %s = mlafix.load %slots[%t] : !ints -> i32
    %i = arith.index_cast %s : i32 to index
    %page = arith.floordivsi %i, %c16 : index
    %whole = arith.muli %page, %c16 : index
    %place = arith.subi %i, %whole : index
    %row = mlafix.load %x[%t] : !rows -> tensor<?xf32, #mlafix.dim<"D">>
    // expected-remark @below {{cache: one writer: promised: the entries of slots that are not negative are distinct}}
    mlafix.store %row, %cache[%page, %place] : tensor<?xf32, #mlafix.dim<"D">>, !pages
    %sum = mlafix.reduce add %row : tensor<?xf32, #mlafix.dim<"D">>
    // expected-remark @below {{lse: one writer: promised: the entries of slots that are not negative are distinct}}
    mlafix.store %sum, %lse[%i] : f32, !vec
  }
}

// The promise does not say that the entries of another table differ, or that halved entries do. It does not cover the
// zeros that loads past the table's end give.
mlafix.kernel @no_promise(%a: !vec {mlafix.dims = ["m"], mlafix.access = "update"}, %b: !vec {mlafix.dims = ["m"], mlafix.access = "update"},
                          %c: !vec {mlafix.dims = ["m"], mlafix.access = "update"}, %x: !vec {mlafix.dims = ["n"], mlafix.access = "read"},
                          %slots: !ints {mlafix.dims = ["n"], mlafix.access = "read"}, %others: !ints {mlafix.dims = ["n"], mlafix.access = "read"},
                          %short: !ints {mlafix.dims = ["k"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %x, %c0 : !vec
  mlafix.distinct %slots : !ints
  mlafix.distinct %short : !ints
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !vec -> f32
    %r = mlafix.load %others[%t] : !ints -> i32
    %i = arith.index_cast %r : i32 to index
    // expected-remark @below {{a: one writer: unknown: it depends on what is read from others}}
    mlafix.store %v, %a[%i] : f32, !vec
    %s = mlafix.load %slots[%t] : !ints -> i32
    %j = arith.index_cast %s : i32 to index
    %half = arith.floordivsi %j, %c2 : index
    // expected-remark @below {{b: one writer: unknown: it depends on what is read from slots}}
    mlafix.store %v, %b[%half] : f32, !vec
    %q = mlafix.load %short[%t] : !ints -> i32
    %k = arith.index_cast %q : i32 to index
    // expected-remark @below {{c: one writer: unknown: it depends on what is read from short}}
    mlafix.store %v, %c[%k] : f32, !vec
  }
}

// Each row stores at two entries of the table. The promise says that all entries differ, so no two rows store to the
// same element.
mlafix.kernel @two(%a: !vec {mlafix.dims = ["m"], mlafix.access = "update"}, %x: !vec {mlafix.dims = ["n"], mlafix.access = "read"},
                   %slots: memref<?x2xi32, strided<[?, ?], offset: ?>> {mlafix.dims = ["n", "two"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !vec
  mlafix.distinct %slots : memref<?x2xi32, strided<[?, ?], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !vec -> f32
    %s = mlafix.load %slots[%t, %c0] : memref<?x2xi32, strided<[?, ?], offset: ?>> -> i32
    %i = arith.index_cast %s : i32 to index
    // expected-remark @below {{a: one writer: promised: the entries of slots that are not negative are distinct}}
    mlafix.store %v, %a[%i] : f32, !vec
    %r = mlafix.load %slots[%t, %c1] : memref<?x2xi32, strided<[?, ?], offset: ?>> -> i32
    %j = arith.index_cast %r : i32 to index
    mlafix.store %v, %a[%j] : f32, !vec
  }
}

// In segments, different rows have different entries, as long as segments do not overlap. An entry that all rows of a
// segment share does not keep these rows apart.
mlafix.kernel @segments(%a: !vec {mlafix.dims = ["m"], mlafix.access = "update"}, %b: !vec {mlafix.dims = ["m"], mlafix.access = "update"},
                        %x: !vec {mlafix.dims = ["n"], mlafix.access = "read"}, %slots: !ints {mlafix.dims = ["n"], mlafix.access = "read"},
                        %cu: memref<?xi32, strided<[1], offset: ?>> {mlafix.dims = ["b1"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !vec
  mlafix.distinct %slots : !ints
  mlafix.ragged_forall (%s, %t) in (%cu, %n) : memref<?xi32, strided<[1], offset: ?>> where {
    %all = arith.constant true
    mlafix.yield %all : i1
  } do {
    %v = mlafix.load %x[%t] : !vec -> f32
    %r = mlafix.load %slots[%t] : !ints -> i32
    %i = arith.index_cast %r : i32 to index
    // expected-remark @below {{a: one writer: promised: the segments of cu do not overlap, and the entries of slots that are not negative are distinct}}
    mlafix.store %v, %a[%i] : f32, !vec
    %known = arith.cmpi slt, %s, %n : index
    %q = mlafix.load %slots[%s] if %known : !ints -> i32
    %j = arith.index_cast %q : i32 to index
    // expected-remark @below {{b: one writer: unknown: it depends on what is read from slots}}
    mlafix.store %v, %b[%j] : f32, !vec
  }
}

// A counterexample never breaks an assumption.
// CHECK-LABEL: @example
mlafix.kernel @example(%out: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %x: !vec {mlafix.dims = ["m"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %n = memref.dim %out, %c0 : !vec
  %p = arith.cmpi sge, %n, %c3 : index
  mlafix.assume %p, "n >= 3"
  mlafix.forall (%t) in (%n) {
    // expected-remark @below {{x: bounds: refuted: n = 3, m = 2, i = 2: x[2]}}
    %v = mlafix.load %x[%t] : !vec -> f32
    mlafix.store %v, %out[%t] : f32, !vec
  }
}
