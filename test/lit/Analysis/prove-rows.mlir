// Proves one writer, independence, and written-before-read.
// RUN: %mlafix-opt %s --canonicalize --mlafix-prove --verify-diagnostics=only-expected -o /dev/null

!vec = memref<?xf32, strided<[?], offset: ?>>
!ints = memref<?xi32, strided<[?], offset: ?>>

// Two rows store to each element. They store the same constant, which counts as one writer.
// expected-remark @below {{out: one writer: proved}}
mlafix.kernel @same_value(%out: !vec {mlafix.dims = ["n"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %v = arith.constant 0.0 : f32
    %half = arith.divui %t, %c2 : index
    mlafix.store %v, %out[%half] : f32, !vec
  }
}
// expected-remark @below {{out: one writer: proved}}
// expected-remark @below {{x: independence: proved}}
mlafix.kernel @evens_and_odds(%out: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %x: !vec {mlafix.dims = ["m"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %out, %c0 : !vec
  %m = memref.dim %x, %c0 : !vec
  mlafix.forall (%t) in (%m) {
    %v = mlafix.load %x[%t] : !vec -> f32
    %a = arith.muli %t, %c2 : index
    %b = arith.addi %a, %c1 : index
    %p = arith.cmpi slt, %a, %n : index
    %q = arith.cmpi slt, %b, %n : index
    mlafix.store %v, %out[%a] if %p : f32, !vec
    mlafix.store %v, %out[%b] if %q : f32, !vec
  }
}
// expected-remark @below {{x: written before read: proved}}
// expected-remark @below {{x: one writer: proved}}
// expected-remark @below {{x: independence: proved}}
// expected-remark @below {{y: one writer: proved}}
mlafix.kernel @read_back(%x: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %y: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %live: index) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %w = mlafix.load %y[%t] : !vec -> f32
    mlafix.store %zero, %x[%t] : f32, !vec
    %v = mlafix.load %x[%t] : !vec -> f32
    mlafix.store %v, %y[%t] : f32, !vec
  }
}
// expected-remark @below {{x: independence: proved}}
mlafix.kernel @ragged(%lse: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %x: !vec {mlafix.dims = ["m"], mlafix.access = "read"},
    %cu: memref<?xi32, strided<[1], offset: ?>> {mlafix.dims = ["b1"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %lse, %c0 : !vec
  %m = memref.dim %x, %c0 : !vec
  mlafix.ragged_forall (%s, %t) in (%cu, %n) : memref<?xi32, strided<[1], offset: ?>> where {
    %known = arith.cmpi slt, %s, %m : index
    %v = mlafix.load %x[%s] if %known : !vec -> f32
    %zero = arith.constant 0.0 : f32
    %p = arith.cmpf oeq, %v, %zero : f32
    mlafix.yield %p : i1
  } do {
    %known = arith.cmpi slt, %s, %m : index
    %v = mlafix.load %x[%s] if %known : !vec -> f32
    // expected-remark @below {{lse: one writer: promised: the segments of cu do not overlap}}
    mlafix.store %v, %lse[%t] : f32, !vec
  }
}
// A row reads an element of its output after a store that may not have happened.
mlafix.kernel @read_in_part(%y: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %z: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %live: index) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %is_live = arith.cmpi slt, %t, %live : index
    mlafix.store %zero, %y[%t] if %is_live : f32, !vec
    // expected-remark @below {{y: written before read: refuted: n = 1, live = 0, i = 0: y[0]}}
    %v = mlafix.load %y[%t] : !vec -> f32
    mlafix.store %zero, %y[%t] : f32, !vec
    mlafix.store %v, %z[%t] : f32, !vec
  }
}
// A row reads only elements that it has written.
// expected-remark @below {{y: written before read: proved}}
mlafix.kernel @read_that_part(%y: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %z: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %live: index) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %is_live = arith.cmpi slt, %t, %live : index
    mlafix.store %zero, %y[%t] if %is_live : f32, !vec
    %v = mlafix.load %y[%t] if %is_live : !vec -> f32
    mlafix.store %zero, %y[%t] : f32, !vec
    mlafix.store %v, %z[%t] : f32, !vec
  }
}
// A ragged grid's predicate must not read a tensor that the rows write.
mlafix.kernel @predicate_reads_what_rows_write(%lse: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %x: !ints {mlafix.dims = ["m"], mlafix.access = "update"},
    %cu: memref<?xi32, strided<[1], offset: ?>> {mlafix.dims = ["b1"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %lse, %c0 : !vec
  %m = memref.dim %x, %c0 : !ints
  mlafix.ragged_forall (%s, %t) in (%cu, %n) : memref<?xi32, strided<[1], offset: ?>> where {
    %known = arith.cmpi slt, %s, %m : index
    %one = arith.constant 1 : i32
    // expected-remark @below {{x: independence: refuted}}
    %v = mlafix.load %x[%s] if %known : !ints -> i32
    %p = arith.cmpi ne, %v, %one : i32
    mlafix.yield %p : i1
  } do {
    %one = arith.constant 1 : i32
    %known = arith.cmpi slt, %s, %m : index
    mlafix.store %one, %x[%s] if %known : i32, !ints
  }
}
// The quotient and the remainder of an index together identify the index.
// expected-remark @below {{out: one writer: proved}}
mlafix.kernel @split_index(%out: !vec {mlafix.dims = ["n"], mlafix.access = "write"}, %x: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : !vec -> f32
    %q = arith.divui %t, %c7 : index
    %r = arith.remui %t, %c7 : index
    %a = arith.muli %q, %c7 : index
    %b = arith.addi %a, %r : index
    mlafix.store %v, %out[%b] : f32, !vec
  }
}
