// Errors of arguments with one tensor per rank.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics

!parts = memref<?x?xf32, strided<[?, 1], offset: ?>>
// expected-error @below {{argument 'x': expected 'mlafix.peers' of a tensor that is only read, or updated, and not optional, got access "write"}}
mlafix.kernel @k(%x: !parts {mlafix.dims = ["ranks", "n"], mlafix.access = "write", mlafix.peers}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

!parts = memref<?x?xf32, strided<[?, 1], offset: ?>>
// expected-error @below {{argument 'x': expected 'mlafix.peers' of a tensor that is only read, or updated, and not optional, got access "read", optional}}
mlafix.kernel @k(%x: !parts {mlafix.dims = ["ranks", "n"], mlafix.access = "read", mlafix.optional, mlafix.peers}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected 'mlafix.peers' without a value, got 8 : i64}}
mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["ranks", "n"], mlafix.access = "read", mlafix.peers = 8}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected at least 2 dims of an argument with 'mlafix.peers', the first of which counts the ranks, got 1}}
mlafix.kernel @k(%x: memref<?xf32, strided<[?], offset: ?>> {mlafix.dims = ["ranks"], mlafix.access = "read", mlafix.peers}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected the first dim, which counts the ranks, to have one name in all arguments, got ""}}
mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["", "n"], mlafix.access = "read", mlafix.peers}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

!parts = memref<?x?xf32, strided<[?, 1], offset: ?>>
// expected-error @below {{argument 'y': expected the first dim, which counts the ranks, to have one name in all arguments, got "others" and "ranks"}}
mlafix.kernel @k(%x: !parts {mlafix.dims = ["ranks", "n"], mlafix.access = "read", mlafix.peers},
                 %y: !parts {mlafix.dims = ["others", "n"], mlafix.access = "read", mlafix.peers}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected at most 72 ranks, got 73}}
mlafix.kernel @k(%x: memref<73x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["ranks", "n"], mlafix.access = "read", mlafix.peers}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected a dynamic stride between the tensors of ranks, got 64}}
mlafix.kernel @k(%x: memref<?x64xf32, strided<[64, 1], offset: ?>> {mlafix.dims = ["ranks", "n"], mlafix.access = "read", mlafix.peers}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

!parts = memref<?x?xf32, strided<[?, 1], offset: ?>>
// expected-error @below {{argument 'v': expected at most 4 arguments with 'mlafix.peers' or 'mlafix.list', got more}}
mlafix.kernel @k(%x: !parts {mlafix.dims = ["ranks", "n"], mlafix.access = "read", mlafix.peers},
                 %y: !parts {mlafix.dims = ["ranks", "n"], mlafix.access = "read", mlafix.peers},
                 %z: !parts {mlafix.dims = ["ranks", "n"], mlafix.access = "read", mlafix.peers},
                 %u: !parts {mlafix.dims = ["ranks", "n"], mlafix.access = "read", mlafix.peers},
                 %v: !parts {mlafix.dims = ["ranks", "n"], mlafix.access = "read", mlafix.peers}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected 'mlafix.peers' of a tensor, got 'index'}}
mlafix.kernel @k(%x: index {mlafix.peers}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["ranks", "n"], mlafix.access = "read", mlafix.peers},
                 %cu: memref<?xi32, strided<[1], offset: ?>> {mlafix.dims = ["b"], mlafix.access = "read"}) {
  %c0 = arith.constant 0 : index
  %true = arith.constant true
  %n = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, 1], offset: ?>>
  // expected-error @below {{expected a dense grid in a collective kernel, got a ragged one}}
  mlafix.ragged_forall (%s, %r) in (%cu, %n) : memref<?xi32, strided<[1], offset: ?>> where {
    mlafix.yield %true : i1
  } do {}
}

// -----

// expected-error @below {{expected 'ranks' from 1 to 72, got 73}}
module attributes {test.param = #mlafix.param<peers, arg = 0, ranks = 73>} {}
