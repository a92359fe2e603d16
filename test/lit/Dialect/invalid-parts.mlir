// Errors of accesses to parts of rows along a product.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics

!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // expected-error @below {{'mlafix.load' op expected the last dim of 'x' to be a product such as (G 128), since the access names a group, got "D"}}
    %v = mlafix.load %x[%t] group %c0 : !rows -> tensor<?xf32, #mlafix.dim<"K">>
  }
}

// -----

!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "(G K)"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // expected-error @below {{'mlafix.load' op expected a group of 'x' along dim "K", got "G"}}
    %v = mlafix.load %x[%t] group %c0 : !rows -> tensor<?xf32, #mlafix.dim<"G">>
  }
}

// -----

!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "(G K)"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // expected-error @below {{'mlafix.load' op expected a member of 'x' along dim "G", got "K"}}
    %v = mlafix.load %x[%t] member %c0 : !rows -> tensor<?xf32, #mlafix.dim<"K">>
  }
}

// -----

!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "(G K)"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // expected-error @below {{'mlafix.load' op expected a row, since the access names only a group or a member of 'x', got an element}}
    %v = mlafix.load %x[%t] member %c0 : !rows -> f32
  }
}

// -----

!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "(G K)"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // expected-error @below {{'mlafix.load' op expected an element, since the access names a group and a member of 'x', got a row}}
    %v = mlafix.load %x[%t] group %c0 member %c0 : !rows -> tensor<?xf32, #mlafix.dim<"K">>
  }
}

// -----

!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "(G K)"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // expected-error @below {{'mlafix.load' op expected 1 indices for a row of 'x', got 2}}
    %v = mlafix.load %x[%t, %c0] group %c0 : !rows -> tensor<?xf32, #mlafix.dim<"K">>
  }
}

// -----

!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "(G K)"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] group %c0 : !rows -> tensor<?xf32, #mlafix.dim<"K">>
    // expected-error @below {{'mlafix.load' op expected a group and a member to name an element along "(G K)", since this kernel also names groups or members of such rows, got one index}}
    %e = mlafix.load %x[%t, %c0] : !rows -> f32
  }
}

// -----

!rows = memref<?x128xf32, strided<[?, 1], offset: ?>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "(64 2)"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<64xf32, #mlafix.dim<64>>
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // expected-error @below {{'mlafix.store_members' op expected a row for each of 2 members, got 3}}
    mlafix.store_members (%zero, %zero, %zero), %x[%t] : tensor<64xf32, #mlafix.dim<64>>, !rows
  }
}

// -----

!rows = memref<?x128xf32, strided<[?, 1], offset: ?>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "(64 2)"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<2xf32, #mlafix.dim<2>>
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // expected-error @below {{'mlafix.store_members' op expected rows along dim 64, got 2}}
    mlafix.store_members (%zero, %zero), %x[%t] : tensor<2xf32, #mlafix.dim<2>>, !rows
  }
}

// -----

!rows = memref<?x128xf32, strided<[?, 1], offset: ?>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "D"], mlafix.access = "write"}) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<64xf32, #mlafix.dim<64>>
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // expected-error @below {{'mlafix.store_members' op expected an argument of the kernel whose last dim is a product, got another dim}}
    mlafix.store_members (%zero, %zero), %x[%t] : tensor<64xf32, #mlafix.dim<64>>, !rows
  }
}
