// Errors of swaps, and of loads of a row into a row along another dim.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics

!rows = memref<?x24xf32, strided<[?, 1], offset: ?>>
!tile = tensor<24xf32, #mlafix.dim<24>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "24"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    // expected-error @below {{expected a power of two as the number of elements in a block, got 3}}
    %w = mlafix.swap %v by 3 : !tile
  }
}

// -----

!rows = memref<?x24xf32, strided<[?, 1], offset: ?>>
!tile = tensor<24xf32, #mlafix.dim<24>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "24"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    // expected-error @below {{expected the size of a row to be a multiple of 16, two blocks of 8 elements, got 24}}
    %w = mlafix.swap %v by 8 : !tile
  }
}

// -----

!rows = memref<?x24xf32, strided<[?, 1], offset: ?>>
!tile = tensor<24xf32, #mlafix.dim<4 x 6>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "(4 6)"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    %u = mlafix.swap %v by 1 : !tile
    // expected-error @below {{expected the size of a group to be a multiple of 8, two blocks of 4 elements, got 6}}
    %w = mlafix.swap %v by 4 : !tile
  }
}

// -----

!rows = memref<?x24xi64, strided<[?, 1], offset: ?>>
!tile = tensor<24xi64, #mlafix.dim<24>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "24"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %v = mlafix.load %x[%t] : !rows -> !tile
    // expected-error @below {{expected a row of f32 or i32, got 'i64'}}
    %w = mlafix.swap %v by 1 : !tile
  }
}

// -----

!rows = memref<?x24xf32, strided<[?, 1], offset: ?>>
!tile = tensor<24xf32, #mlafix.dim<24>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "24"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expected first >= -2147483647 and each >= 1, got first = 4 and each = 0}}
    %v = mlafix.load_into %x[%t] from 4 each 0 : !rows -> !tile
  }
}

// -----

!rows = memref<?x24xf32, strided<[?, 1], offset: ?>>
!tile = tensor<8xf32, #mlafix.dim<8>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "24"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expected a row of at least 9 elements to read into, got one along 8}}
    %v = mlafix.load_into %x[%t] from 9 : !rows -> !tile
  }
}

// -----

!rows = memref<?x24xf4E2M1FN, strided<[?, 1], offset: ?>>
!tile = tensor<48xf32, #mlafix.dim<48>>
mlafix.kernel @k(%x: !rows {mlafix.dims = ["n", "24"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expected a row with elements of whole bytes to read into another one, got f4e2m1}}
    %v = mlafix.load_into %x[%t] from 0 : !rows -> !tile
  }
}
