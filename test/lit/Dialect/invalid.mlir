// Tests every message of the verifiers and the parsers.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{argument 'x': expected an element type of bf16, f16, f32, f8e4m3fn, i32, i64, i8, u8, bool, f8e5m2, f8e8m0, f4e2m1, got 'f64'}}
mlafix.kernel @k(%x: memref<?xf64, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected a strided layout, got}}
mlafix.kernel @k(%x: memref<?xf32, affine_map<(d0) -> (d0 mod 2)>> {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected no memory space, got 3}}
mlafix.kernel @k(%x: memref<?xf32, 3> {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected 'mlafix.access' to be "read", "write", "update" or "absent", got none}}
mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"]}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{got "modify"}}
mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "modify"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected 'mlafix.dims' to name 1 dims, got none}}
mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.access = "read"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected 'mlafix.dims' to name 1 dims, got 2}}
mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n", "m"], mlafix.access = "read"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected 'mlafix.dims' to hold names, got 1}}
mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = [1], mlafix.access = "read"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected dim "H" to be the same in all arguments, got ? and 8}}
mlafix.kernel @k(%x: memref<8x?xf32> {mlafix.dims = ["H", "H"], mlafix.access = "read"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected 'mlafix.dtype' to be an upper-case name, got "t"}}
mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read", mlafix.dtype = "t"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'y': expected dtype "T" to be the same in all arguments, got 'f16' and 'bf16'}}
mlafix.kernel @k(%x: memref<?xbf16> {mlafix.dims = ["n"], mlafix.access = "read", mlafix.dtype = "T"},
                 %y: memref<?xf16> {mlafix.dims = ["n"], mlafix.access = "read", mlafix.dtype = "T"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected a memref or one of index, i64, i32, f32, i1, got 'f64'}}
mlafix.kernel @k(%x: f64 ) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected 'mlafix.at_most' to name a dim of a tensor that is always given, got "n"}}
mlafix.kernel @k(%x: index {mlafix.at_most = "n"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected 'mlafix.at_most' of an integer, got one of 'f32'}}
mlafix.kernel @k(%x: f32 {mlafix.at_most = "n"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{expected a kernel without results, got 1}}
mlafix.kernel @k() -> f32 {}

// -----

// expected-error @below {{expected a name for each of the 1 arguments, got 0}}
"mlafix.kernel"() <{arg_names = [], function_type = (f32) -> (), sym_name = "k"}> ({
^bb0(%x: f32):
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
  mlafix.return
}) : () -> ()

// -----

// expected-error @below {{argument 'x': expected a name that no other argument has, got it twice}}
"mlafix.kernel"() <{arg_names = ["x", "x"], function_type = (f32, f32) -> (), sym_name = "k"}> ({
^bb0(%x: f32, %y: f32):
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
  mlafix.return
}) : () -> ()

// -----

// expected-error @below {{expected a grid (mlafix.forall or mlafix.ragged_forall) in a kernel, got none}}
mlafix.kernel @k() {}

// -----

mlafix.kernel @k() {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
  // expected-error @below {{expected one grid in a kernel, got a second}}
  mlafix.forall (%t) in (%c1) {}
}

// -----

mlafix.kernel @k() {
  // expected-error @below {{expected only constants, dims, promises and the grid at the top of a kernel, got an operation with effects: put it into the grid}}
  %a = memref.alloca() : memref<4xf32>
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

mlafix.kernel @k(%m: index) {
  %c1 = arith.constant 1 : index
  // expected-note @below {{computed here}}
  %two = arith.addi %m, %c1 : index
  // expected-error @below {{expected every extent to be a dim of an argument, an integer argument, a constant or computed from upper-case dims, got one that is computed from other values: pass it as an argument}}
  mlafix.forall (%t) in (%two) {}
}

// -----

mlafix.kernel @k() {
  // expected-error @below {{expected at least one extent, got none}}
  mlafix.forall () in () {}
}

// -----

mlafix.kernel @k() {
  %c1 = arith.constant 1 : index
  // expected-error @below {{expected 2 indices in the body, got 1}}
  "mlafix.forall"(%c1, %c1) ({
  ^bb0(%t: index):
    mlafix.yield
  }) : (index, index) -> ()
}

// -----

mlafix.kernel @k() {
  %c1 = arith.constant 1 : index
  // expected-error @below {{expected indices of type index, got 'i32'}}
  "mlafix.forall"(%c1) ({
  ^bb0(%t: i32):
    mlafix.yield
  }) : (index) -> ()
}

// -----

mlafix.kernel @k() {
  %c1 = arith.constant 1 : index
  // expected-error @below {{expected a body that yields nothing, got 1 values}}
  mlafix.forall (%t) in (%c1) {
    mlafix.yield %t : index
  }
}

// -----

mlafix.kernel @k(%lse: memref<?x?xf32, strided<[?, ?], offset: ?>> {mlafix.dims = ["H", "n"], mlafix.access = "read"}) {
  %c1 = arith.constant 1 : index
  // expected-error @below {{expected cu_seqlens to be a kernel argument of rank 1 and type i32, got}}
  mlafix.ragged_forall (%seg, %row) in (%lse, %c1) : memref<?x?xf32, strided<[?, ?], offset: ?>> where {
    %true = arith.constant true
    mlafix.yield %true : i1
  } do {}
}

// -----

mlafix.kernel @k(%lens: memref<?xi32, strided<[?], offset: ?>> {mlafix.dims = ["b"], mlafix.access = "read"}) {
  %c1 = arith.constant 1 : index
  // expected-error @below {{expected (%segment, %row, inner indices…) in (%cu_seqlens, %rows, inner extents…), got 1 indices and 2 operands}}
  mlafix.ragged_forall (%seg) in (%lens, %c1) : memref<?xi32, strided<[?], offset: ?>> where {
    %true = arith.constant true
    mlafix.yield %true : i1
  } do {}
}

// -----

mlafix.kernel @k(%lens: memref<?xi32, strided<[?], offset: ?>> {mlafix.dims = ["b"], mlafix.access = "read"}) {
  %c1 = arith.constant 1 : index
  // expected-error @below {{expected a predicate that yields one i1, got 0 values}}
  mlafix.ragged_forall (%seg, %row) in (%lens, %c1) : memref<?xi32, strided<[?], offset: ?>> where {
    mlafix.yield
  } do {}
}

// -----

mlafix.kernel @k(%lens: memref<?xi32, strided<[?], offset: ?>> {mlafix.dims = ["b"], mlafix.access = "read"}) {
  %c1 = arith.constant 1 : index
  // expected-error @below {{expected a body that yields nothing, got values}}
  mlafix.ragged_forall (%seg, %row) in (%lens, %c1) : memref<?xi32, strided<[?], offset: ?>> where {
    %true = arith.constant true
    mlafix.yield %true : i1
  } do {
    mlafix.yield %row : index
  }
}

// -----

mlafix.kernel @k(  %out: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %x: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"},
    %lens: memref<?xi32, strided<[?], offset: ?>> {mlafix.dims = ["b"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.ragged_forall (%seg, %row) in (%lens, %n) : memref<?xi32, strided<[?], offset: ?>> where {
    // expected-error @below {{expected only scalar reads in the predicate of a ragged grid, got a row}}
    %v = mlafix.load %x[%seg, %seg] : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"D">>
    %true = arith.constant true
    mlafix.yield %true : i1
  } do {}
}

// -----

mlafix.kernel @k(  %out: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %lens: memref<?xi32, strided<[?], offset: ?>> {mlafix.dims = ["b"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.ragged_forall (%seg, %row) in (%lens, %n) : memref<?xi32, strided<[?], offset: ?>> where {
    %zero = arith.constant 0.0 : f32
    // expected-error @below {{expected only scalar reads in the predicate of a ragged grid, got a write}}
    mlafix.store %zero, %out[%seg, %seg, %seg] : f32, memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
    %true = arith.constant true
    mlafix.yield %true : i1
  } do {}
}

// -----

mlafix.kernel @k(  %out: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %lse: memref<?x?xf32, strided<[?, ?], offset: ?>> {mlafix.dims = ["H", "n"], mlafix.access = "read"},
    %x: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %n) {
    // expected-error @below {{expected 2 indices for a row of 'x', got 1}}
    %s = mlafix.load_state %x[%t] lse %lse[%h, %t] : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>, memref<?x?xf32, strided<[?, ?], offset: ?>> -> !mlafix.state<"D", e>
  }
}

// -----

mlafix.kernel @k(  %out: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %lse: memref<?x?xf32, strided<[?, ?], offset: ?>> {mlafix.dims = ["H", "n"], mlafix.access = "read"},
    %x: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %n) {
    // expected-error @below {{expected 2 indices for an element of 'lse', got 1}}
    %s = mlafix.load_state %x[%t, %h] lse %lse[%h] : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>, memref<?x?xf32, strided<[?, ?], offset: ?>> -> !mlafix.state<"D", e>
  }
}

// -----

mlafix.kernel @k(  %out: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %lse: memref<?x?xf32, strided<[?, ?], offset: ?>> {mlafix.dims = ["H", "n"], mlafix.access = "read"},
    %x: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %n) {
    // expected-error @below {{expected a row of 'x' along dim "D", got "E"}}
    %s = mlafix.load_state %x[%t, %h] lse %lse[%h, %t] : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>, memref<?x?xf32, strided<[?, ?], offset: ?>> -> !mlafix.state<"E", e>
  }
}

// -----

mlafix.kernel @k(  %out: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %x: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %n) {
    // expected-error @below {{expected an lse of f32, got 'bf16'}}
    %s = mlafix.load_state %x[%t, %h] lse %x[%h, %t, %t] : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>, memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> -> !mlafix.state<"D", e>
  }
}

// -----

mlafix.kernel @k(%out: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %n) {
    %s = mlafix.identity : !mlafix.state<"D", e>
    // expected-error @below {{expected a payload, an lse or both to store to, got neither}}
    mlafix.store_state %s : !mlafix.state<"D", e>
  }
}

// -----

mlafix.kernel @k(  %out: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %x: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %n) {
    %s = mlafix.identity : !mlafix.state<"D", e>
    // expected-error @below {{expected 'x' to be writable to store to it, got access "read"}}
    mlafix.store_state %s to %x[%t, %h] : !mlafix.state<"D", e>, memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  }
}

// -----

mlafix.kernel @k(  %out: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %counts: memref<?xi32, strided<[1], offset: ?>> {mlafix.dims = ["b"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %n) {
    %s = mlafix.identity : !mlafix.state<"b", e>
    // expected-error @below {{expected a payload of floats, got 'i32'}}
    mlafix.store_state %s to %counts[] : !mlafix.state<"b", e>, memref<?xi32, strided<[1], offset: ?>>
  }
}

// -----

mlafix.kernel @k() {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t, %h) in (%c1, %c1) {
    %a = mlafix.identity : !mlafix.state<"D", e>
    // expected-note @below {{prior use here}}
    %b = mlafix.identity : !mlafix.state<"D", 2>
    // expected-error @below {{use of value '%b' expects different type than prior uses: '!mlafix.state<"D", e>' vs '!mlafix.state<"D", 2>'}}
    %m = mlafix.merge %a, %b : !mlafix.state<"D", e>
  }
}

// -----

mlafix.kernel @k(%out: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %n) {
    // expected-error @below {{expected at least one state to merge, got none}}
    %m = "mlafix.merge"() : () -> !mlafix.state<"D", e>
  }
}

// -----

mlafix.kernel @k(%out: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %n) {
    %s = mlafix.identity : !mlafix.state<"D", e>
    // expected-error @below {{expected the same dim on both sides, got "D" and "E"}}
    %r = mlafix.rebase %s : !mlafix.state<"D", e> -> !mlafix.state<"E", 2>
  }
}

// -----

mlafix.kernel @k() {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t, %h) in (%c1, %c1) {
    // expected-error @below {{expected base e, 2 or an upper-case name in quotes, got "10"}}
    %s = mlafix.identity : !mlafix.state<"D", 10>
  }
}

// -----

mlafix.kernel @k() {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t, %h) in (%c1, %c1) {
    // expected-error @below {{expected base e or 2, got ten}}
    %s = mlafix.identity : !mlafix.state<"D", ten>
  }
}

// -----

mlafix.kernel @k() {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t, %h) in (%c1, %c1) {
    // expected-error @below {{expected a dim of at least 1, got 0}}
    %s = mlafix.identity : !mlafix.state<0, e>
  }
}

// -----

mlafix.kernel @k() {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t, %h) in (%c1, %c1) {
    // expected-error @below {{expected a dim: a name in quotes or a size}}
    %s = mlafix.identity : !mlafix.state<D, e>
  }
}

// -----

mlafix.kernel @k() {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t, %h) in (%c1, %c1) {
    // expected-error @below {{expected a dim's name or size, got an empty name}}
    %s = mlafix.identity : !mlafix.state<"", e>
  }
}

// -----

mlafix.kernel @k(  %out: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %x: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %n) {
    // expected-error @below {{expected 2 indices for a row of 'x', got 1}}
    %v = mlafix.load %x[%t] : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"D">>
  }
}

// -----

mlafix.kernel @k(  %out: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %x: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %n) {
    // expected-error @below {{expected 'f32' for elements of type 'bf16', got 'i32'}}
    %v = mlafix.load %x[%t, %h, %h] : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> -> i32
  }
}

// -----

mlafix.kernel @k(  %out: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %lens: memref<?xi32, strided<[?], offset: ?>> {mlafix.dims = ["b"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %n) {
    %zero = arith.constant 0 : i32
    // expected-error @below {{expected a predicate beside the 'else' value, got none}}
    %v = mlafix.load %lens[%t] else %zero : memref<?xi32, strided<[?], offset: ?>> -> i32
  }
}

// -----

mlafix.kernel @k(  %out: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
    %lens: memref<?xi32, strided<[?], offset: ?>> {mlafix.dims = ["b"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %n) {
    // expected-error @below {{expected the last dim of 'lens' to have stride 1 (N12), got}}
    %v = mlafix.load %lens[] : memref<?xi32, strided<[?], offset: ?>> -> tensor<?xi32, #mlafix.dim<"b">>
  }
}

// -----

mlafix.kernel @k(  %out: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %n) {
    %m = memref.alloca() : memref<4xf32>
    // expected-error @below {{expected the source to be an argument of the kernel, got a result of 'memref.alloca'}}
    %v = mlafix.load %m[%t] : memref<4xf32> -> f32
  }
}

// -----

mlafix.kernel @k(  %out: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %n) {
    %zero = arith.constant 0 : i32
    // expected-error @below {{expected 'f32' for elements of type 'bf16', got 'i32'}}
    mlafix.store %zero, %out[%t, %h, %h] : i32, memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  }
}

// -----

mlafix.kernel @k(%out: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "write"},
                 %x: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %out, %c0 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %n) {
    // expected-error @below {{expected an argument of the kernel with 'mlafix.optional', got one without it}}
    %p = mlafix.present %x : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  }
}

// -----

// expected-error @below {{expected 1 to 1024 lanes, got 0}}
#l = #mlafix.layout<lanes = 0, packs = 1, pack = 8, rows = 1>

// -----

// expected-error @below {{expected a power of two of elements in a pack, got 6}}
#l = #mlafix.layout<lanes = 4, packs = 1, pack = 6, rows = 1>

// -----

// expected-error @below {{expected at least one pack and one row, got packs = 0, rows = 1}}
#l = #mlafix.layout<lanes = 4, packs = 0, pack = 8, rows = 1>

// -----

// expected-error @below {{expected at most 1024 threads in a block, got lanes * rows = 2048}}
#l = #mlafix.layout<lanes = 32, packs = 1, pack = 8, rows = 64>

// -----

// expected-error @below {{expected a power of two of blocks, at most 8, got 16}}
#l = #mlafix.layout<lanes = 4096, packs = 1, pack = 8, rows = 1, blocks = 16>

// -----

// expected-error @below {{expected 1 to 2048 lanes, got 4096}}
#l = #mlafix.layout<lanes = 4096, packs = 1, pack = 8, rows = 1, blocks = 2>

// -----

// expected-error @below {{expected whole warps of lanes and one lane group where blocks share a row, got lanes = 48, groups = 1, blocks = 2}}
#l = #mlafix.layout<lanes = 48, packs = 1, pack = 8, rows = 1, blocks = 2>

// -----

// expected-error @below {{expected 1 to 2147483647 parts of a row, got 0}}
#l = #mlafix.layout<lanes = 256, packs = 1, pack = 8, rows = 1, parts = 0>

// -----

// expected-error @below {{expected one row, one lane group and no cluster where a row has parts, got rows = 2, groups = 1, blocks = 1}}
#l = #mlafix.layout<lanes = 32, packs = 1, pack = 8, rows = 2, parts = 4>

// -----

mlafix.kernel @k(%x: memref<?xf32> {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c1 = arith.constant 1 : index
  // expected-error @below {{expected a dim below the rank, 1, got 1}}
  %n = memref.dim %x, %c1 : memref<?xf32>
  mlafix.forall (%t) in (%n) {}
}

// -----

mlafix.kernel @k(%x: memref<?xf32> {mlafix.dims = ["n"], mlafix.access = "read"}, %i: index) {
  // expected-error @below {{expected a constant as the number of a dim, got an argument of 'mlafix.kernel'}}
  %n = memref.dim %x, %i : memref<?xf32>
  mlafix.forall (%t) in (%i) {}
}

// -----

// expected-error @below {{argument 'x': expected no offset, or a dynamic one (the host's pointer is to the first element), got 5}}
mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: 5>> {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected an element type of bf16, f16, f32, f8e4m3fn, i32, i64, i8, u8, bool, f8e5m2, f8e8m0, f4e2m1, got 'index'}}
mlafix.kernel @k(%x: memref<?xindex> {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{expected different names for dims, dtypes, bases and optional arguments, got 'T' for two of them}}
mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["T"], mlafix.dtype = "T", mlafix.access = "read"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'm': expected one of mlafix.dims, mlafix.dtype, mlafix.access, mlafix.optional, mlafix.at_most, mlafix.fill, mlafix.peers, mlafix.list, mlafix.swizzle, got mlafix.at_mots}}
mlafix.kernel @k(%m: index {mlafix.at_mots = "n"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected 'mlafix.optional' without a value, got false}}
mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read", mlafix.optional = false}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

mlafix.kernel @k() {
  %m = arith.constant -1 : index
  // expected-error @below {{expected extents that are not negative, got -1}}
  mlafix.forall (%t) in (%m) {}
}

// -----

mlafix.kernel @k(%on: i1) {
  // expected-note @below {{computed here}}
  %m = arith.index_cast %on : i1 to index
  // expected-error @below {{expected every extent to be a dim of an argument, an integer argument, a constant or computed from upper-case dims, got one that is computed from other values: pass it as an argument}}
  mlafix.forall (%t) in (%m) {}
}

// -----

mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read", mlafix.optional}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32, strided<[1], offset: ?>>
  // expected-error @below {{expected extents of tensors that are always given, got a dim of 'x', which is optional; pass the extent as an integer argument}}
  mlafix.forall (%t) in (%n) {}
}

// -----

mlafix.kernel @k(%x: memref<?xi32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read", mlafix.optional}, %n: index) {
  // expected-error @below {{expected cu_seqlens to be always given, got an optional argument}}
  mlafix.ragged_forall (%seg, %row) in (%x, %n) : memref<?xi32, strided<[1], offset: ?>> where {
    %true = arith.constant true
    mlafix.yield %true : i1
  } do {}
}

// -----

mlafix.kernel @k(%n: index) {
  %v = arith.constant dense<1.0> : tensor<4xf32, #mlafix.dim<4>>
  // expected-error @below {{expected only constants, dims, promises and the grid at the top of a kernel, got a row: put it into the grid}}
  %s = mlafix.reduce add %v : tensor<4xf32, #mlafix.dim<4>>
  mlafix.forall (%t) in (%n) {}
}

// -----

mlafix.kernel @k(%x: memref<?xi32, strided<[1], offset: ?>> {mlafix.dims = ["b1"], mlafix.access = "read"}, %n: index) {
  %v = arith.constant dense<1.0> : tensor<4xf32, #mlafix.dim<4>>
  mlafix.ragged_forall (%seg, %row) in (%x, %n) : memref<?xi32, strided<[1], offset: ?>> where {
    // expected-error @below {{expected only scalar reads in the predicate of a ragged grid, got a row}}
    %s = mlafix.reduce add %v : tensor<4xf32, #mlafix.dim<4>>
    %p = arith.cmpf ogt, %s, %s : f32
    mlafix.yield %p : i1
  } do {}
}

// -----

// expected-error @below {{expected one row in a block whose rows cross warps, got rows = 2}}
#l = #mlafix.layout<lanes = 64, packs = 1, pack = 8, rows = 2>

// -----

// expected-error @below {{argument 'x': expected sizes of at least 1, or dynamic ones, got 0}}
mlafix.kernel @k(%x: memref<0xf32> {mlafix.dims = ["N"], mlafix.access = "read"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

mlafix.kernel @k(%x: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "update"},
                 %lse: memref<?x?xf32, strided<[?, ?], offset: ?>> {mlafix.dims = ["H", "n"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t, %h) in (%c1, %c1) {
    // expected-error @below {{expected base e, 2 or an upper-case name in quotes, got "b"}}
    %s = mlafix.load_state %x[%t, %h] lse %lse[%h, %t] : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>, memref<?x?xf32, strided<[?, ?], offset: ?>> -> !mlafix.state<"D", "b">
  }
}

// -----

mlafix.kernel @k(%x: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "update"},
                 %lse: memref<?x?xf32, strided<[?, ?], offset: ?>> {mlafix.dims = ["H", "n"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t, %h) in (%c1, %c1) {
    // expected-error @below {{expected base e without quotes, got "e"}}
    %s = mlafix.load_state %x[%t, %h] lse %lse[%h, %t] : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>, memref<?x?xf32, strided<[?, ?], offset: ?>> -> !mlafix.state<"D", "e">
  }
}

// -----

mlafix.kernel @k(%x: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "update"},
                 %lse: memref<?x?xf32, strided<[?, ?], offset: ?>> {mlafix.dims = ["H", "n"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t, %h) in (%c1, %c1) {
    %s = mlafix.load_state %x[%t, %h] lse %lse[%h, %t] : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>, memref<?x?xf32, strided<[?, ?], offset: ?>> -> !mlafix.state<"D", "B">
    // expected-note @below {{prior use here}}
    %r = mlafix.load_state %x[%t, %h] lse %lse[%h, %t] : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>, memref<?x?xf32, strided<[?, ?], offset: ?>> -> !mlafix.state<"D", e>
    // expected-error @below {{use of value '%r' expects different type}}
    %m = mlafix.merge %s, %r : !mlafix.state<"D", "B">
  }
}

// -----

// expected-error @below {{expected different names for dims, dtypes, bases and optional arguments, got 'H' for two of them}}
mlafix.kernel @k(%x: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "update"},
                 %lse: memref<?x?xf32, strided<[?, ?], offset: ?>> {mlafix.dims = ["H", "n"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t, %h) in (%c1, %c1) {
    %s = mlafix.load_state %x[%t, %h] lse %lse[%h, %t] : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>, memref<?x?xf32, strided<[?, ?], offset: ?>> -> !mlafix.state<"D", "H">
  }
}

// -----

// expected-error @below {{expected 'defaults' to name dims, dtypes and bases of the kernel, got 'Q'}}
mlafix.kernel @k() attributes {defaults = {Q = 1}} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{default of 'D': expected a size of at least 1, got "x"}}
mlafix.kernel @k(%x: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "update"}) attributes {defaults = {D = "x"}} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{default of 'T': expected the name of a dtype, got "float"}}
mlafix.kernel @k(%x: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "update"}) attributes {defaults = {T = "float"}} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{default of 'B': expected "e", "2" or another base, without a cycle, got "10"}}
mlafix.kernel @k(%x: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "update"},
                 %lse: memref<?x?xf32, strided<[?, ?], offset: ?>> {mlafix.dims = ["H", "n"], mlafix.access = "update"}) attributes {defaults = {B = "10"}} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t, %h) in (%c1, %c1) {
    %s = mlafix.load_state %x[%t, %h] lse %lse[%h, %t] : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>, memref<?x?xf32, strided<[?, ?], offset: ?>> -> !mlafix.state<"D", "B">
  }
}

// -----

// The defaults of bases must not form a cycle.
// expected-error @below {{default of 'B': expected "e", "2" or another base, without a cycle, got "P"}}
mlafix.kernel @k(%x: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "update"},
                 %lse: memref<?x?xf32, strided<[?, ?], offset: ?>> {mlafix.dims = ["H", "n"], mlafix.access = "update"}) attributes {defaults = {B = "P", P = "B"}} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t, %h) in (%c1, %c1) {
    %s = mlafix.load_state %x[%t, %h] lse %lse[%h, %t] : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>, memref<?x?xf32, strided<[?, ?], offset: ?>> -> !mlafix.state<"D", "B">
  }
}

// -----

// expected-error @below {{default of 'n': expected none, since the dim is dynamic, got 4}}
mlafix.kernel @k(%lse: memref<?x?xf32, strided<[?, ?], offset: ?>> {mlafix.dims = ["H", "n"], mlafix.access = "update"}) attributes {defaults = {n = 4}} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

mlafix.kernel @k(%x: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "update"},
                 %lse: memref<?x?xf32, strided<[?, ?], offset: ?>> {mlafix.dims = ["H", "n"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %n) {
    %s = mlafix.load_state %x[%t, %h] lse %lse[%h, %t] : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>, memref<?x?xf32, strided<[?, ?], offset: ?>> -> !mlafix.state<"D", e>
    %scale = arith.constant 2.0 : f32
    // expected-error @below {{expected a payload beside the scale, got none}}
    mlafix.store_state %s scale %scale lse %lse[%h, %t] : !mlafix.state<"D", e>, memref<?x?xf32, strided<[?, ?], offset: ?>>
  }
}

// -----

mlafix.kernel @k(%x: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %n) {
    %row = mlafix.load %x[%t, %h] : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"D">>
    %one = arith.constant 1.0 : f32
    // expected-error @below {{expected a row of 'tensor<?xf32, #mlafix.dim<"E">>' for the state, got 'tensor<?xf32, #mlafix.dim<"D">>'}}
    %s = mlafix.make_state %row lse %one : tensor<?xf32, #mlafix.dim<"D">> -> !mlafix.state<"E", e>
  }
}

// -----

mlafix.kernel @k(%x: memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["n", "H", "D"], mlafix.dtype = "T", mlafix.access = "update"},
                 %lens: memref<?xi64, strided<[?], offset: ?>> {mlafix.dims = ["b"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x?x?xbf16, strided<[?, ?, 1], offset: ?>>
  mlafix.forall (%t, %h) in (%n, %n) {
    // expected-error @below {{expected an integer of at least 64 bits for elements of type 'i64', got 'i32'}}
    %l = mlafix.load %lens[%t] : memref<?xi64, strided<[?], offset: ?>> -> i32
  }
}

// -----

// expected-error @below {{expected different names for dims, dtypes, bases and optional arguments, got 'n' for two of them}}
mlafix.kernel @k(%n: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read", mlafix.optional}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{default of 'x': expected none, since this is an optional argument, got "absent"}}
mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read", mlafix.optional}) attributes {defaults = {x = "absent"}} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected 'mlafix.optional' beside access "absent", got none}}
mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "absent"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected an argument with access "absent" to be unused, got a use of it in the body}}
mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "absent", mlafix.optional}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %given = mlafix.present %x : memref<?xf32, strided<[1], offset: ?>>
  }
}

// -----

!sink = !mlafix.state<64, e, sink>
mlafix.kernel @k(%v: memref<?x64xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %s = mlafix.identity : !sink
    // expected-error @below {{expected at most one state with a sink, which counts once, got 2}}
    %m = mlafix.merge %s, %s : !sink
    mlafix.store_state %m to %v[%t] : !sink, memref<?x64xf32, strided<[?, 1], offset: ?>>
  }
}

// -----

!sink = !mlafix.state<64, e, sink>
!state = !mlafix.state<64, e>
mlafix.kernel @k() {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %s = mlafix.identity : !sink
    // expected-error @below {{expected a result with a sink, as an operand has one, got '!mlafix.state<64, e>'}}
    %m = mlafix.merge %s : (!sink) -> !state
  }
}

// -----

!sink = !mlafix.state<64, e, sink>
!state = !mlafix.state<64, 2>
mlafix.kernel @k() {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %s = mlafix.identity : !sink
    %a = mlafix.identity : !state
    // expected-error @below {{expected states of the dim and base of '!mlafix.state<64, e, sink>' (N8), got '!mlafix.state<64, 2>'}}
    %m = mlafix.merge %s, %a : (!sink, !state) -> !sink
  }
}

// -----

mlafix.kernel @k() {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %s = mlafix.identity : !mlafix.state<64, e, sink>
    // expected-error @below {{expected a sink on both sides or on none, got '!mlafix.state<64, e, sink>' and '!mlafix.state<64, 2>'}}
    %m = mlafix.rebase %s : !mlafix.state<64, e, sink> -> !mlafix.state<64, 2>
  }
}

// -----

mlafix.kernel @k() {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expected 'sink'}}
    %s = mlafix.identity : !mlafix.state<64, e, sunk>
  }
}

// -----

!sink = !mlafix.state<64, e, sink>
mlafix.kernel @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %s = mlafix.identity : !sink
    // expected-error @below {{expected a state without a sink in its type, got '!mlafix.state<64, e, sink>'}}
    %r = mlafix.merge_loop %k = %c0 to %c1 step 4 init(%s) : !sink {
      mlafix.yield %s : !sink
    }
  }
}

// -----

mlafix.kernel @k(%v: memref<?x64xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %e = mlafix.identity : !mlafix.state<64, e>
    // expected-error @below {{expected a step of at least 1, got 0}}
    %r = mlafix.merge_loop %k = %c0 to %c1 step 0 init(%e) : !mlafix.state<64, e> {
      mlafix.yield %e : !mlafix.state<64, e>
    }
    mlafix.store_state %r to %v[%t] : !mlafix.state<64, e>, memref<?x64xf32, strided<[?, 1], offset: ?>>
  }
}

// -----

mlafix.kernel @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %zero = arith.constant 0 : i32
    // expected-error @below {{expected one number of f32, one state, or its maximum, sum and accumulator, got 1 values}}
    %r = mlafix.merge_loop %k = %c0 to %c1 step 4 init(%zero) : i32 {
      mlafix.yield %zero : i32
    }
  }
}

// -----

mlafix.kernel @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %zero = arith.constant 0.0 : f32
    // expected-error @below {{expected neither to_first nor a base where a number is carried, got to_first}}
    %r = mlafix.merge_loop to_first %k = %c0 to %c1 step 4 init(%zero) : f32 {
      mlafix.yield %zero : f32
    }
  }
}

// -----

mlafix.kernel @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %e = mlafix.identity : !mlafix.state<64, e>
    %r = mlafix.merge_loop %k = %c0 to %c1 step 4 init(%e) : !mlafix.state<64, e> {
      // expected-error @above {{expected a body that yields a chunk of the type of the result, '!mlafix.state<64, e>', got nothing}}
      mlafix.yield
    }
  }
}

// -----

mlafix.kernel @k(%v: memref<?x64xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %e = mlafix.identity : !mlafix.state<64, e>
    %r = mlafix.merge_loop %k = %c0 to %c1 step 4 init(%e) : !mlafix.state<64, e> {
      // expected-error @below {{expected no store in a merge loop, got one}}
      mlafix.store_state %e to %v[%t] : !mlafix.state<64, e>, memref<?x64xf32, strided<[?, 1], offset: ?>>
      mlafix.yield %e : !mlafix.state<64, e>
    }
  }
}

// -----

// expected-error @below {{expected a power of two of lane groups, at most 32, got 3}}
#layout = #mlafix.layout<lanes = 32, packs = 1, pack = 4, rows = 1, groups = 3>

// -----

mlafix.kernel @groups(%g: i32) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expected no group values or 4 (group, number of groups, threads of a group, this thread), got 2}}
    mlafix_thread.row groups(%g, %g) {}
  }
}

// -----

mlafix.kernel @half(%p: i1) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %a = llvm.mlir.zero : !llvm.ptr<1>
    // expected-error @below {{expected a value of 1, 2, 4 or 8 words of 32 bits, got 'bf16'}}
    %v = mlafix_thread.predicated_load %a if %p : !llvm.ptr<1> -> bf16
  }
}

// -----

mlafix.kernel @k(%x: memref<8xf32> {mlafix.dims = ["eight"], mlafix.access = "read"}) {
  // expected-error @below {{expected memory that a memref.alloca allocates, got other memory}}
  mlafix_thread.await_pushes %x : memref<8xf32>
}

// -----

mlafix.kernel @k(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %partials = memref.alloca() : memref<8xf32, #gpu.address_space<workgroup>>
  scf.for %i = %c0 to %n step %c1 {
    // expected-error @below {{expected no loop around it, since each element is pushed once, got one}}
    mlafix_thread.await_pushes %partials : memref<8xf32, #gpu.address_space<workgroup>>
  }
}

// -----

mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"},
                 %y: memref<?xf16, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expected tensors of one rank and dtype, got 'memref<?xf32, strided<[1], offset: ?>>' and 'memref<?xf16, strided<[1], offset: ?>>'}}
    %same = mlafix.same_tensor %x, %y : memref<?xf32, strided<[1], offset: ?>>, memref<?xf16, strided<[1], offset: ?>>
  }
}

// -----

mlafix.kernel @buffer(%p: i1) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %buffer = memref.alloca() : memref<2x64xf32>
    // expected-error @below {{expected the source to be an argument of the kernel, got a result of 'memref.alloca'}}
    %v = mlafix.load %buffer[%t] : memref<2x64xf32> -> tensor<64xf32, #mlafix.dim<64>>
  }
}

// -----

mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %y = memref.cast %x : memref<?xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[?], offset: ?>>
    // expected-error @below {{expected two arguments of the kernel, got a result of 'memref.cast'}}
    %same = mlafix.same_tensor %x, %y : memref<?xf32, strided<[1], offset: ?>>, memref<?xf32, strided<[?], offset: ?>>
  }
}

// -----

// expected-error @below {{expected 'bounds' to be "guard" or "prove", got "none"}}
mlafix.kernel @k() attributes {bounds = "none"} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{expected 'allow' to hold "races", "bounds" and "nan" alone, got "race"}}
mlafix.kernel @k() attributes {allow = ["nan", "race"]} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected 'mlafix.fill' of a tensor with access "write", got access "update"}}
mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "update", mlafix.fill = 0.0 : f32}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected a number of type f32 or "identity" as 'mlafix.fill', got 0 : i64}}
mlafix.kernel @k(%x: memref<?xbf16, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write", mlafix.fill = 0}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected an integer in the range of the dtype or "identity" as 'mlafix.fill', got 200 : i64}}
mlafix.kernel @k(%x: memref<?xi8, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write", mlafix.fill = 200}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

mlafix.kernel @k(%x: f32) {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %p = arith.cmpf ogt, %x, %zero : f32
  // expected-error @below {{expected a condition of integer arguments and sizes, in at most 256 steps, since it is before the grid, got one that a launch cannot compute}}
  mlafix.assume %p, "x > 0"
  mlafix.forall (%t) in (%c1) {}
}

// -----

mlafix.kernel @k(%p: i1, %q: i1) {
  %c1 = arith.constant 1 : index
  %both = arith.minsi %p, %q : i1
  // expected-error @below {{expected a condition of integer arguments and sizes, in at most 256 steps, since it is before the grid, got one that a launch cannot compute}}
  mlafix.assume %both, "min(p, q)"
  mlafix.forall (%t) in (%c1) {}
}

// -----

mlafix.kernel @k(%p: i1) {
  %c1 = arith.constant 1 : index
  // expected-error @below {{expected a text of 1 to 1024 bytes in UTF-8 without control characters, got ""}}
  mlafix.assume %p, ""
  mlafix.forall (%t) in (%c1) {}
}

// -----

mlafix.kernel @k(%p: i1) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expected a {} in the text for each value, got 1 for 2 values}}
    mlafix.print "p = {}", %p, %t : i1, index
  }
}

// -----

mlafix.kernel @k(%p: i1) {
  %c1 = arith.constant 1 : index
  // expected-error @below {{expected only constants, dims, promises and the grid at the top of a kernel, got an operation with effects: put it into the grid}}
  mlafix.print "p = {}", %p : i1
  mlafix.forall (%t) in (%c1) {}
}

// -----

mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c1 = arith.constant 1 : index
  // expected-error @below {{expected a table of integers, got 'f32'}}
  mlafix.distinct %x : memref<?xf32, strided<[1], offset: ?>>
  mlafix.forall (%t) in (%c1) {}
}

// -----

mlafix.kernel @k(%x: memref<?xi32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  // expected-error @below {{expected a table that is read, got access "update"}}
  mlafix.distinct %x : memref<?xi32, strided<[1], offset: ?>>
  mlafix.forall (%t) in (%c1) {}
}

// -----

mlafix.kernel @k() {
  %c1 = arith.constant 1 : index
  %x = memref.alloca() : memref<4xi32>
  // expected-error @below {{expected an argument of the kernel, got a result of 'memref.alloca'}}
  mlafix.distinct %x : memref<4xi32>
  mlafix.forall (%t) in (%c1) {}
}

// -----

mlafix.kernel @k(%x: memref<?xi32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expects parent op 'mlafix.kernel'}}
    mlafix.distinct %x : memref<?xi32, strided<[1], offset: ?>>
  }
}

// -----

mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    // expected-error @below {{expected a row of i32, got 'f32'}}
    %i = mlafix.iota : tensor<?xf32, #mlafix.dim<"D">>
  }
}

// -----

mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : memref<?x?xf32, strided<[?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"D">>
    // expected-error @below {{expected max or min, got add}}
    %i = mlafix.arg_reduce add %v : tensor<?xf32, #mlafix.dim<"D">>
  }
}

// -----

mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : memref<?x?xf32, strided<[?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"D">>
    %p = arith.cmpf oeq, %v, %v : tensor<?xf32, #mlafix.dim<"D">>
    // expected-error @below {{expected a row of f32 or i32, got 'i1'}}
    %i = mlafix.arg_reduce max %p : tensor<?xi1, #mlafix.dim<"D">>
  }
}

// -----

mlafix.kernel @k(%x: memref<?x?xi64, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x?xi64, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : memref<?x?xi64, strided<[?, 1], offset: ?>> -> tensor<?xi64, #mlafix.dim<"D">>
    // expected-error @below {{expected a row of f32 or i32, got 'i64'}}
    %i = mlafix.scan add %v : tensor<?xi64, #mlafix.dim<"D">>
  }
}

// -----

// A store to bytes accepts numbers of any type. A store to other integers accepts only their own type.
mlafix.kernel @k(%x: memref<?xi32, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"}, %v: f32) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expected 'i32' for elements of type 'i32', got 'f32'}}
    mlafix.store %v, %x[%t] : f32, memref<?xi32, strided<[1], offset: ?>>
  }
}

// -----

mlafix.kernel @k(%x: memref<?xi8, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "write"}, %v: i1) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expected 'i8' for elements of type 'i8', got 'i1'}}
    mlafix.store %v, %x[%t] : i1, memref<?xi8, strided<[1], offset: ?>>
  }
}

// -----

// A float may be loaded as an integer only if its dtype is a variable.
mlafix.kernel @k(%x: memref<?xbf16, strided<[1], offset: ?>> {mlafix.dims = ["n"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xbf16, strided<[1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    // expected-error @below {{expected 'f32' for elements of type 'bf16', got 'i64'}}
    %v = mlafix.load %x[%t] : memref<?xbf16, strided<[1], offset: ?>> -> i64
  }
}

// -----

// Two elements of f4e2m1 share a byte. Each row must begin at a byte boundary, and loads and stores must access whole
// bytes: rows, groups, or slices with even ends, but not single elements, members, or rows with one element per group.
// expected-error @below {{argument 'x': expected an even size of the last dim for elements of f4e2m1 (two elements a byte), got 3}}
mlafix.kernel @k(%x: memref<?x3xf4E2M1FN, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "three"], mlafix.access = "read"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected a last dim with stride 1 for elements of f4e2m1, got}}
mlafix.kernel @k(%x: memref<?x4xf4E2M1FN, strided<[?, 2], offset: ?>> {mlafix.dims = ["n", "four"], mlafix.access = "read"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected a dtype variable to stand for elements of whole bytes, got f4e2m1}}
mlafix.kernel @k(%x: memref<?x4xf4E2M1FN, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "four"], mlafix.access = "read", mlafix.dtype = "T"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected no 'mlafix.fill' of f4e2m1, got one; declare InOut and fill it before the call}}
mlafix.kernel @k(%x: memref<?x4xf4E2M1FN, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "four"], mlafix.access = "write", mlafix.fill = 0.0 : f32}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

mlafix.kernel @k(%x: memref<?x4xf4E2M1FN, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "four"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x4xf4E2M1FN, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    // expected-error @below {{expected a whole row or group of 'x', which is f4e2m1 (two elements a byte), got a single element}}
    %v = mlafix.load %x[%t, %c0] : memref<?x4xf4E2M1FN, strided<[?, 1], offset: ?>> -> f32
  }
}

// -----

mlafix.kernel @k(%x: memref<?x4xf4E2M1FN, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "(2 2)"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x4xf4E2M1FN, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    // expected-error @below {{expected a whole row or group of 'x', which is f4e2m1 (two elements a byte), got one member of each group}}
    %v = mlafix.load %x[%t] member %c0 : memref<?x4xf4E2M1FN, strided<[?, 1], offset: ?>> -> tensor<2xf32, #mlafix.dim<2>>
  }
}

// -----

mlafix.kernel @k(%x: memref<?x2xf4E2M1FN, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "G"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x2xf4E2M1FN, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    // expected-error @below {{expected a whole row or group of 'x', which is f4e2m1 (two elements a byte), got a row of one element a group}}
    %v = mlafix.load %x[%t] : memref<?x2xf4E2M1FN, strided<[?, 1], offset: ?>> -> tensor<2xf32, #mlafix.dim<2 per 4>>
  }
}

// -----

mlafix.kernel @k(%x: memref<?x6xf4E2M1FN, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "(2 3)"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x6xf4E2M1FN, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    // expected-error @below {{expected an even number of elements in a group of 'x', which is f4e2m1 (two elements a byte), got 3}}
    %v = mlafix.load %x[%t] : memref<?x6xf4E2M1FN, strided<[?, 1], offset: ?>> -> tensor<6xf32, #mlafix.dim<2 x 3>>
  }
}

// -----

// Errors of tensors whose rows and columns are in tiles.
// expected-error @below {{argument 'x': expected 'mlafix.swizzle' to be "128x4" or "8x4", got "64x4"}}
mlafix.kernel @k(%x: memref<?x?xi8, strided<[?, 1], offset: ?>> {mlafix.dims = ["m", "n"], mlafix.access = "update", mlafix.swizzle = "64x4"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected 'mlafix.swizzle' of a single tensor, got List}}
mlafix.kernel @k(%x: memref<?x?x?xi8, strided<[?, ?, 1], offset: ?>> {mlafix.dims = ["", "m", "n"], mlafix.access = "read", mlafix.list = 8, mlafix.swizzle = "128x4"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected elements of whole bytes beside 'mlafix.swizzle', got f4e2m1}}
mlafix.kernel @k(%x: memref<?x4xf4E2M1FN, strided<[?, 1], offset: ?>> {mlafix.dims = ["m", "four"], mlafix.access = "update", mlafix.swizzle = "128x4"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected 2 dims or more beside 'mlafix.swizzle', got 1}}
mlafix.kernel @k(%x: memref<?xi8, strided<[1], offset: ?>> {mlafix.dims = ["m"], mlafix.access = "update", mlafix.swizzle = "128x4"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected a last dim with stride 1 beside 'mlafix.swizzle', got}}
mlafix.kernel @k(%x: memref<?x?xi8, strided<[?, ?], offset: ?>> {mlafix.dims = ["m", "n"], mlafix.access = "update", mlafix.swizzle = "128x4"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected a multiple of 128 rows, padding included, of a tensor with 'mlafix.swizzle', got 100}}
mlafix.kernel @k(%x: memref<100x4xi8, strided<[?, 1], offset: ?>> {mlafix.dims = ["m", "n"], mlafix.access = "update", mlafix.swizzle = "128x4"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected a row stride that is a multiple of 4 and at least 6 for a tensor with 'mlafix.swizzle', got 6}}
mlafix.kernel @k(%x: memref<?x6xi8, strided<[6, 1], offset: ?>> {mlafix.dims = ["m", "n"], mlafix.access = "update", mlafix.swizzle = "128x4"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected a row stride that is a multiple of 4 and at least 6 for a tensor with 'mlafix.swizzle', got 4}}
mlafix.kernel @k(%x: memref<?x6xi8, strided<[4, 1], offset: ?>> {mlafix.dims = ["m", "n"], mlafix.access = "update", mlafix.swizzle = "128x4"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected stride 4 in dim 1, since the columns of a tensor with 'mlafix.swizzle' follow each other, got 8}}
mlafix.kernel @k(%x: memref<?x3x4xi8, strided<[?, 8, 1], offset: ?>> {mlafix.dims = ["m", "n", "k"], mlafix.access = "update", mlafix.swizzle = "128x4"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

mlafix.kernel @k(%x: memref<?x4xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["m", "D"], mlafix.access = "update", mlafix.swizzle = "128x4"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x4xf32, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    // expected-error @below {{expected an element of 'x' or a row of one element a group, since the tensor lies in tiles (swizzle), got a row along 4}}
    %v = mlafix.load %x[%t] : memref<?x4xf32, strided<[?, 1], offset: ?>> -> tensor<4xf32, #mlafix.dim<4>>
  }
}
