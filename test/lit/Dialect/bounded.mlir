// Rows along a dim with a bound, whose size the launch decides, are printed and parsed. They are refused where they are
// not supported. Also tests the errors of wrong bounds.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics | %mlafix-opt --split-input-file | FileCheck %s
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics --mlir-print-op-generic | %mlafix-opt --split-input-file | FileCheck %s

!rows = memref<?x?xf32, strided<[?, 1], offset: ?>>
!tile = tensor<1024xf32, #mlafix.dim<"b" most 1024>>
// CHECK: mlafix.kernel @scale(
// CHECK-SAME: attributes {most = {b = 1024 : i64}}
mlafix.kernel @scale(%x: !rows {mlafix.dims = ["n", "b"], mlafix.access = "update"}) attributes {most = {b = 1024}} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : !rows
  mlafix.forall (%t) in (%n) {
    // CHECK: tensor<1024xf32, #mlafix.dim<"b" most 1024>>
    %v = mlafix.load %x[%t] : !rows -> !tile
    %w = arith.addf %v, %v : !tile
    mlafix.store %w, %x[%t] : !tile, !rows
  }
}

// -----

// expected-error @below {{expected a number from 1 to 2147483647 as the bound of dim 'b', got 0 : i64}}
mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["b"], mlafix.access = "read"}) attributes {most = {b = 0}} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{expected 'most' to bound lower-case dims of tensors that are always given, got 'B'}}
mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["B"], mlafix.access = "read"}) attributes {most = {B = 8}} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{expected 'most' to bound lower-case dims of tensors that are always given, got 'b'}}
mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["b"], mlafix.access = "read", mlafix.optional}) attributes {most = {b = 8}} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

// expected-error @below {{argument 'x': expected dim "b" to be at most 8, got 9}}
mlafix.kernel @k(%x: memref<9xf32, strided<[1], offset: ?>> {mlafix.dims = ["b"], mlafix.access = "read"}) attributes {most = {b = 8}} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {}
}

// -----

mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["b"], mlafix.access = "read"}) attributes {most = {b = 8}} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expected a row of 'x' along dim "b<=8", got "b<=7"}}
    %v = mlafix.load %x[] : memref<?xf32, strided<[1], offset: ?>> -> tensor<7xf32, #mlafix.dim<"b" most 7>>
  }
}

// -----

mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["b"], mlafix.access = "read"}) attributes {most = {b = 8}} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    %v = mlafix.load %x[] : memref<?xf32, strided<[1], offset: ?>> -> tensor<8xf32, #mlafix.dim<"b" most 8>>
    // expected-error @below {{expected a row whose size is known when the kernel is compiled, got one along "b<=8"}}
    %s = mlafix.swap %v by 1 : tensor<8xf32, #mlafix.dim<"b" most 8>>
  }
}

// -----

mlafix.kernel @k(%x: memref<?xf32, strided<[1], offset: ?>> {mlafix.dims = ["b"], mlafix.access = "read"}) attributes {most = {b = 8}} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expected a state along a dim that is known when the kernel is compiled, got one along "b<=8"}}
    %s = mlafix.identity : <"b" most 8, e>
  }
}

// -----

mlafix.kernel @k(%x: memref<?xf4E2M1FN, strided<[1], offset: ?>> {mlafix.dims = ["b"], mlafix.access = "update"}) attributes {most = {b = 8}} {
  %c1 = arith.constant 1 : index
  mlafix.forall (%t) in (%c1) {
    // expected-error @below {{expected rows of 'x', which is f4e2m1 (two elements a byte), along a dim that is known when the kernel is compiled, got "b<=8"}}
    %v = mlafix.load %x[] : memref<?xf4E2M1FN, strided<[1], offset: ?>> -> tensor<8xf32, #mlafix.dim<"b" most 8>>
  }
}

// -----

// expected-error @below {{expected a bound of at least 1, got 0}}
func.func private @f(tensor<0xf32, #mlafix.dim<"b" most 0>>)

// -----

// expected-error @below {{expected the name of a dim to give a bound, got a size}}
func.func private @f(tensor<8xf32, #mlafix.dim<8 most 8>>)

// -----

// expected-error @below {{expected 'by' to be a power of two, at most 4, got 8}}
func.func private @f(tensor<4xf32, #mlafix.dim<"b" most 4 by 8>>)
