// Proofs about rows whose indices come from tables, which may be omitted or read under a predicate.
// RUN: %mlafix-opt %s --mlafix-define-edge-cases --canonicalize --mlafix-prove --verify-diagnostics=only-expected -o /dev/null

!vec = memref<?xf32, strided<[?], offset: ?>>
!ints = memref<?xi32, strided<[?], offset: ?>>

// The tables `from` and `to` may be omitted. Row i adds elements x[from[j]], or x[j] without `from`, and stores the sum
// to out[to[i]], or to out[i] without `to`. The stores are in bounds. By the promise that the entries of `to` differ,
// no two rows store to the same element.
// expected-remark @below {{out: bounds: proved}}
// expected-remark @below {{x: independence: proved}}
// expected-remark @below {{x: bounds: proved}}
// expected-remark @below {{starts: independence: proved}}
// expected-remark @below {{starts: bounds: proved}}
// expected-remark @below {{from: independence: proved}}
// expected-remark @below {{from: bounds: proved}}
// expected-remark @below {{to: independence: proved}}
// expected-remark @below {{to: bounds: proved}}
mlafix.kernel @runs(%out: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %x: !vec {mlafix.dims = ["p"], mlafix.access = "read"},
                    %starts: !ints {mlafix.dims = ["g1"], mlafix.access = "read"}, %from: !ints {mlafix.dims = ["k"], mlafix.access = "read", mlafix.optional},
                    %to: !ints {mlafix.dims = ["g"], mlafix.access = "read", mlafix.optional}, %least: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %none = arith.constant -1 : i32
  %f0 = arith.constant 0.0 : f32
  %n = memref.dim %out, %c0 : !vec
  %p = memref.dim %x, %c0 : !vec
  %g1 = memref.dim %starts, %c0 : !ints
  %k = memref.dim %from, %c0 : !ints
  %g = memref.dim %to, %c0 : !ints
  mlafix.distinct %to : !ints
  mlafix.forall (%i) in (%g1) {
    %next = arith.addi %i, %c1 : index
    %known = arith.cmpi slt, %next, %g1 : index
    %first = mlafix.load %starts[%i] if %known : !ints -> i32
    %last = mlafix.load %starts[%next] if %known : !ints -> i32
    %has_to = mlafix.present %to : !ints
    %t = scf.if %has_to -> index {
      %listed = arith.cmpi slt, %i, %g : index
      %row = mlafix.load %to[%i] if %listed else %none : !ints -> i32
      %mapped = arith.index_cast %row : i32 to index
      scf.yield %mapped : index
    } else {
      scf.yield %i : index
    }
    %above = arith.cmpi sle, %c0, %t : index
    %below = arith.cmpi slt, %t, %n : index
    %inside = arith.andi %above, %below : i1
    %positive = arith.cmpi sle, %zero, %first : i32
    %ordered = arith.cmpi sle, %first, %last : i32
    %sound = arith.andi %positive, %ordered : i1
    %size = arith.subi %last, %first : i32
    %count = arith.select %sound, %size, %zero : i32
    %enough = arith.cmpi sge, %count, %least : i32
    %there = arith.andi %known, %inside : i1
    %wanted = arith.andi %there, %enough : i1
    scf.if %wanted {
      %lower = arith.index_cast %first : i32 to index
      %upper = arith.index_cast %last : i32 to index
      %stop = arith.select %sound, %upper, %lower : index
      %sum = scf.for %j = %lower to %stop step %c1 iter_args(%acc = %f0) -> f32 {
        %has_from = mlafix.present %from : !ints
        %s = scf.if %has_from -> index {
          %listed = arith.cmpi slt, %j, %k : index
          %part = mlafix.load %from[%j] if %listed else %none : !ints -> i32
          %mapped = arith.index_cast %part : i32 to index
          scf.yield %mapped : index
        } else {
          scf.yield %j : index
        }
        %low = arith.cmpi sle, %c0, %s : index
        %high = arith.cmpi slt, %s, %p : index
        %within = arith.andi %low, %high : i1
        %v = mlafix.load %x[%s] if %within : !vec -> f32
        %more = arith.addf %acc, %v : f32
        scf.yield %more : f32
      }
      // expected-remark @below {{out: one writer: promised: the entries of to that are not negative are distinct}}
      mlafix.store %sum, %out[%t] : f32, !vec
    }
  }
}

// Each row that stores an element has loaded its index from `to`. The store to `a` has the predicate of the load. The
// load for `b` gives -1 if its predicate is false, and a store at -1 does nothing.
mlafix.kernel @read_where_stored(%a: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %b: !vec {mlafix.dims = ["n"], mlafix.access = "update"},
                                 %x: !vec {mlafix.dims = ["m"], mlafix.access = "read"}, %to: !ints {mlafix.dims = ["g"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %none = arith.constant -1 : i32
  %m = memref.dim %x, %c0 : !vec
  %g = memref.dim %to, %c0 : !ints
  mlafix.distinct %to : !ints
  mlafix.forall (%i) in (%m) {
    %v = mlafix.load %x[%i] : !vec -> f32
    %listed = arith.cmpi slt, %i, %g : index
    %r = mlafix.load %to[%i] if %listed : !ints -> i32
    %t = arith.index_cast %r : i32 to index
    // expected-remark @below {{a: one writer: promised: the entries of to that are not negative are distinct}}
    mlafix.store %v, %a[%t] if %listed : f32, !vec
    %q = mlafix.load %to[%i] if %listed else %none : !ints -> i32
    %s = arith.index_cast %q : i32 to index
    // expected-remark @below {{b: one writer: promised: the entries of to that are not negative are distinct}}
    mlafix.store %v, %b[%s] : f32, !vec
  }
}

// One writer is not proved. The stores to `a` and `b` also happen where no entry is loaded: two rows may then store at
// 0, or at the load's `else` value. Nothing is promised of the table for `c`.
mlafix.kernel @read_elsewhere(%a: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %b: !vec {mlafix.dims = ["n"], mlafix.access = "update"},
                              %c: !vec {mlafix.dims = ["n"], mlafix.access = "update"},
                              %x: !vec {mlafix.dims = ["m"], mlafix.access = "read"}, %to: !ints {mlafix.dims = ["g"], mlafix.access = "read"},
                              %any: !ints {mlafix.dims = ["g"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %some = arith.constant 1 : i32
  %m = memref.dim %x, %c0 : !vec
  %g = memref.dim %to, %c0 : !ints
  mlafix.distinct %to : !ints
  mlafix.forall (%i) in (%m) {
    %v = mlafix.load %x[%i] : !vec -> f32
    %listed = arith.cmpi slt, %i, %g : index
    %r = mlafix.load %to[%i] if %listed : !ints -> i32
    %t = arith.index_cast %r : i32 to index
    // expected-remark @below {{a: one writer: unknown: it depends on what is read from to}}
    mlafix.store %v, %a[%t] : f32, !vec
    %q = mlafix.load %to[%i] if %listed else %some : !ints -> i32
    %s = arith.index_cast %q : i32 to index
    // expected-remark @below {{b: one writer: unknown: it depends on what is read from to}}
    mlafix.store %v, %b[%s] : f32, !vec
    %o = mlafix.load %any[%i] if %listed : !ints -> i32
    %u = arith.index_cast %o : i32 to index
    // expected-remark @below {{c: one writer: unknown: it depends on what is read from any}}
    mlafix.store %v, %c[%u] if %listed : f32, !vec
  }
}

// The promise applies only if the table is present. If the table is omitted, two rows store to the same element.
mlafix.kernel @omitted(%a: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %b: !vec {mlafix.dims = ["n"], mlafix.access = "update"},
                       %x: !vec {mlafix.dims = ["m"], mlafix.access = "read"},
                       %to: !ints {mlafix.dims = ["m"], mlafix.access = "read", mlafix.optional}) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %a, %c0 : !vec
  %m = memref.dim %x, %c0 : !vec
  mlafix.distinct %to : !ints
  mlafix.forall (%i) in (%m) {
    %v = mlafix.load %x[%i] : !vec -> f32
    %r = mlafix.load %to[%i] : !ints -> i32
    %t = arith.index_cast %r : i32 to index
    // expected-remark @below {{a: one writer: unknown: it depends on what is read from to}}
    mlafix.store %v, %a[%t] : f32, !vec
    %has_to = mlafix.present %to : !ints
    %s = scf.if %has_to -> index {
      scf.yield %t : index
    } else {
      %half = arith.divui %i, %c2 : index
      scf.yield %half : index
    }
    %below = arith.cmpi slt, %s, %n : index
    // expected-remark @below {{b: one writer: unknown: it depends on what is read from to}}
    mlafix.store %v, %b[%s] if %below : f32, !vec
  }
}
