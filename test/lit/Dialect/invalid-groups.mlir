// Errors of products of dims, and of ops on their groups.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{argument 'x': expected a product of two dims, upper-case names or numbers, as "(G 128)", got "(G k)"}}
mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "(G k)"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected a product of two dims, upper-case names or numbers, as "(G 128)", got "(G K J)"}}
mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "(G K J)"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected a product of two dims, upper-case names or numbers, as "(G 128)", got "(G)"}}
mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "(G)"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected a product of two dims, upper-case names or numbers, as "(G 128)", got "(G 0)"}}
mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "(G 0)"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected a product of two dims, upper-case names or numbers, as "(G 128)", got "(G  K)"}}
mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "(G  K)"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected a product of two dims, upper-case names or numbers, as "(G 128)", got "(G K"}}
mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "(G K"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected the size of dim "(G 128)" to be dynamic until its names are bound, got 512}}
mlafix.kernel @k(%x: memref<?x512xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "(G 128)"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected the size of dim "(4 128)" to be 512, got 500}}
mlafix.kernel @k(%x: memref<?x500xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "(4 128)"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'y': expected dim "G", a factor of "(G 128)", to be dynamic until it is bound, got 4}}
mlafix.kernel @k(%x: memref<4xf32, strided<[1], offset: ?>> {mlafix.dims = ["G"], mlafix.access = "read"},
                 %y: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["(G 128)"], mlafix.access = "read"}) {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "(G K)"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    // expected-error @below {{expected a row of 'x' along dim "(G K)", got "(G 128)"}}
    %w = mlafix.load %x[%t] : memref<?x?xf32, strided<[?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"G" x 128>>
  }
}

// -----

mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "(G K)"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    // expected-error @below {{expected a row of 'x' along dim "(G K)", got "G per K"}}
    %w = mlafix.load %x[%t] : memref<?x?xf32, strided<[?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"G" per "K">>
  }
}

// -----

mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "(G K)"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : memref<?x?xf32, strided<[?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"G" x "K">>
    // expected-error @below {{expected a row along "G", one element for each group of "(G K)", got one along "H"}}
    %m = mlafix.reduce max %v : tensor<?xf32, #mlafix.dim<"G" x "K">> -> tensor<?xf32, #mlafix.dim<"H">>
  }
}

// -----

mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "(G K)"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : memref<?x?xf32, strided<[?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"G" x "K">>
    // expected-error @below {{expected a result of 'f32', got 'i32'}}
    %m = mlafix.reduce max %v : tensor<?xf32, #mlafix.dim<"G" x "K">> -> tensor<?xi32, #mlafix.dim<"G">>
  }
}

// -----

mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "(G K)"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : memref<?x?xf32, strided<[?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"G" x "K">>
    // expected-error @below {{expected a result of 'i32', got 'f32'}}
    %m = mlafix.arg_reduce max %v : tensor<?xf32, #mlafix.dim<"G" x "K">> -> tensor<?xf32, #mlafix.dim<"G">>
  }
}

// -----

mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : memref<?x?xf32, strided<[?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"D">>
    // expected-error @below {{expected a row along a product of dims, since the other row has one element for each of its groups, got one along "D"}}
    %m = mlafix.reduce max %v : tensor<?xf32, #mlafix.dim<"D">> -> tensor<?xf32, #mlafix.dim<"G">>
  }
}

// -----

mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : memref<?x?xf32, strided<[?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"D">>
    %s = mlafix.reduce add %v : tensor<?xf32, #mlafix.dim<"D">>
    %w = mlafix.splat %s : f32 -> tensor<?xf32, #mlafix.dim<"D" x 8>>
    // expected-error @below {{expected a row along "D", one element for each group of "(D 4)", got one along "(D 8)"}}
    %b = mlafix.broadcast %w : tensor<?xf32, #mlafix.dim<"D" x 8>> -> tensor<?xf32, #mlafix.dim<"D" x 4>>
  }
}

// -----

mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : memref<?x?xf32, strided<[?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"D">>
    // expected-error @below {{expected rows of one type, got 'f32' and 'i32'}}
    %b = mlafix.broadcast %v : tensor<?xf32, #mlafix.dim<"D">> -> tensor<?xi32, #mlafix.dim<"D" x 4>>
  }
}

// -----

// expected-error @below {{expected a dim: a name in quotes or a size}}
func.func private @f(!mlafix.state<"G" x e, e>)

// -----

// expected-error @below {{expected a dim of at least 1, got 0}}
func.func private @f(tensor<?xf32, #mlafix.dim<"G" x 0>>)

// -----

// expected-error @below {{expected a product of at most 64 bits, got 4611686018427387904 x 4}}
func.func private @f(tensor<?xf32, #mlafix.dim<4611686018427387904 x 4>>)

// -----

mlafix.kernel @k(%x: memref<?x?xf32, strided<[?, 1], offset: ?>> {mlafix.dims = ["n", "D"], mlafix.access = "update"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, 1], offset: ?>>
  mlafix.forall (%t) in (%n) {
    %v = mlafix.load %x[%t] : memref<?x?xf32, strided<[?, 1], offset: ?>> -> tensor<?xf32, #mlafix.dim<"D">>
    // expected-error @below {{expected a row along a product of dims to scan in groups, got one along "D"}}
    %m = mlafix.scan max %v in_groups : tensor<?xf32, #mlafix.dim<"D">>
  }
}
