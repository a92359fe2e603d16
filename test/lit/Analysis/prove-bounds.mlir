// Proves bounds of indices that are computed from grid indices, sizes, scalars and table entries, also in loops.
// RUN: %mlafix-opt %s --canonicalize --mlafix-prove --verify-diagnostics=only-expected -o /dev/null

!vec = memref<?xf32, strided<[?], offset: ?>>
!mat = memref<?x?xf32, strided<[?, ?], offset: ?>>
!ints = memref<?xi32, strided<[?], offset: ?>>
// expected-remark @below {{out: bounds: proved}}
mlafix.kernel @next(%out: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %x: !vec {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %next = arith.addi %t, %c1 : index
    // expected-remark @below {{x: bounds: refuted: n = 1, i = 0: x[1]}}
    %v = mlafix.load %x[%next] : !vec -> f32
    mlafix.store %v, %out[%t] : f32, !vec
  }
}
// expected-remark @below {{out: bounds: proved}}
// expected-remark @below {{x: bounds: proved}}
// expected-remark @below {{table: bounds: proved}}
mlafix.kernel @clamped(%out: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %x: !vec {mlafix.dims = ["m"], mlafix.access = "read"},
    %table: !ints {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !vec
  %m = memref.dim %x, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %s = mlafix.load %table[%t] : !ints -> i32
    %i = arith.index_cast %s : i32 to index
    %last = arith.subi %m, %c1 : index
    %low = arith.maxsi %i, %c0 : index
    %at = arith.minsi %low, %last : index
    %some = arith.cmpi sgt, %m, %c0 : index
    %v = mlafix.load %x[%at] if %some : !vec -> f32
    mlafix.store %v, %out[%t] : f32, !vec
  }
}
// expected-remark @below {{out: bounds: proved}}
// expected-remark @below {{table: bounds: proved}}
mlafix.kernel @clamped_badly(%out: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %x: !vec {mlafix.dims = ["m"], mlafix.access = "read"},
    %table: !ints {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  %m = memref.dim %x, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %s = mlafix.load %table[%t] : !ints -> i32
    %i = arith.index_cast %s : i32 to index
    %low = arith.maxsi %i, %c0 : index
    %at = arith.minsi %low, %m : index
    // expected-remark @below {{x: bounds: unknown: it depends on what is read from table}}
    %v = mlafix.load %x[%at] : !vec -> f32
    mlafix.store %v, %out[%t] : f32, !vec
  }
}
// expected-remark @below {{out: bounds: proved}}
// expected-remark @below {{x: bounds: proved}}
mlafix.kernel @wraps(%out: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %x: !vec {mlafix.dims = ["n"], mlafix.access = "read"}, %s: index) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %at = arith.addi %t, %s : index
    %low = arith.cmpi sge, %at, %c0 : index
    %high = arith.cmpi slt, %at, %n : index
    %in = arith.andi %low, %high : i1
    %v = mlafix.load %x[%at] if %in : !vec -> f32
    mlafix.store %v, %out[%t] : f32, !vec
  }
}
// expected-remark @below {{out: bounds: proved}}
// expected-remark @below {{x: bounds: proved}}
mlafix.kernel @modulo(%out: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %x: memref<4xf32, strided<[?], offset: ?>> {mlafix.dims = ["four"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %n = memref.dim %out, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %at = arith.remui %t, %c4 : index
    %v = mlafix.load %x[%at] : memref<4xf32, strided<[?], offset: ?>> -> f32
    mlafix.store %v, %out[%t] : f32, !vec
  }
}
// expected-remark @below {{out: bounds: proved}}
// expected-remark @below {{x: bounds: proved}}
mlafix.kernel @optional(%out: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %x: !vec {mlafix.dims = ["m"], mlafix.access = "read", mlafix.optional}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : !vec
  %m = memref.dim %x, %c0 : !vec
  mlafix.forall (%t) in (%n) {
    %in = arith.cmpi slt, %t, %m : index
    %v = mlafix.load %x[%t] if %in : !vec -> f32
    mlafix.store %v, %out[%t] : f32, !vec
  }
}
// expected-remark @below {{out: bounds: proved}}
mlafix.kernel @loop(%out: !vec {mlafix.dims = ["n"], mlafix.access = "update"}, %x: !mat {mlafix.dims = ["n", "m"], mlafix.access = "read"}, %k: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c0 : !vec
  %kk = arith.index_cast %k : i32 to index
  mlafix.forall (%t) in (%n) {
    %zero = arith.constant 0.0 : f32
    %sum = scf.for %j = %c0 to %kk step %c1 iter_args(%a = %zero) -> f32 {
      // expected-remark @below {{x: bounds: refuted: n = 1, k = 1, m = 0, i = 0: x[0, 0]}}
      %v = mlafix.load %x[%t, %j] : !mat -> f32
      %b = arith.addf %a, %v : f32
      scf.yield %b : f32
    }
    mlafix.store %sum, %out[%t] : f32, !vec
  }
}
// A scalar that is at most a dim of known size. No launch passes a larger number.
!two = memref<2xf32, strided<[?], offset: ?>>
// expected-remark @below {{z: bounds: proved}}
// expected-remark @below {{z: one writer: proved}}
mlafix.kernel @at_most_a_bound_name(%z: !two {mlafix.dims = ["H"], mlafix.access = "update"}, %count: i64 {mlafix.at_most = "H"}) {
  %v = arith.constant 0.0 : f32
  %n = arith.index_cast %count : i64 to index
  mlafix.forall (%h) in (%n) {
    mlafix.store %v, %z[%h] : f32, !two
  }
}
// expected-remark @below {{z: one writer: proved}}
mlafix.kernel @beyond_a_bound_name(%z: !two {mlafix.dims = ["H"], mlafix.access = "update"}, %count: i64 {mlafix.at_most = "H"}) {
  %v = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %count : i64 to index
  mlafix.forall (%h) in (%n) {
    %next = arith.addi %h, %c1 : index
    // expected-remark @below {{z: bounds: refuted: count = 2, i = 1: z[2]}}
    mlafix.store %v, %z[%next] : f32, !two
  }
}
