// Errors of arguments that are lists of tensors.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics

!parts = memref<?x?xf32, strided<[?, 1], offset: ?>>
// expected-error @below {{argument 'x': expected 'mlafix.list' of a tensor that is only read and not optional, got access "update"}}
mlafix.kernel @k(%x: !parts {mlafix.dims = ["", "n"], mlafix.access = "update", mlafix.list = 8}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

!parts = memref<?x?xf32, strided<[?, 1], offset: ?>>
// expected-error @below {{argument 'x': expected 'mlafix.list' to be the most tensors that a call may pass, 1 to 72, got 73 : i64}}
mlafix.kernel @k(%x: !parts {mlafix.dims = ["", "n"], mlafix.access = "read", mlafix.list = 73}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

!parts = memref<?x?xf32, strided<[?, 1], offset: ?>>
// expected-error @below {{argument 'x': expected 'mlafix.list' to be the most tensors that a call may pass, 1 to 72, got unit}}
mlafix.kernel @k(%x: !parts {mlafix.dims = ["", "n"], mlafix.access = "read", mlafix.list}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

!parts = memref<?x?xf32, strided<[?, 1], offset: ?>>
// expected-error @below {{argument 'x': expected 'mlafix.list' or 'mlafix.peers', got both}}
mlafix.kernel @k(%x: !parts {mlafix.dims = ["ranks", "n"], mlafix.access = "read", mlafix.list = 8, mlafix.peers}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected at least 2 dims of an argument with 'mlafix.list', the first of which counts the tensors, got 1}}
mlafix.kernel @k(%x: memref<?xf32, strided<[?], offset: ?>> {mlafix.dims = [""], mlafix.access = "read", mlafix.list = 8}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected a list of at most 8 tensors, got 9}}
mlafix.kernel @k(%x: memref<9x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["", "n"], mlafix.access = "read", mlafix.list = 8}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected a dynamic stride between the tensors of a list, got 64}}
mlafix.kernel @k(%x: memref<?x?xf32, strided<[64, 1], offset: ?>> {mlafix.dims = ["", "n"], mlafix.access = "read", mlafix.list = 8}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected 'mlafix.list' of a tensor, got 'index'}}
mlafix.kernel @k(%x: index {mlafix.list = 8}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}
