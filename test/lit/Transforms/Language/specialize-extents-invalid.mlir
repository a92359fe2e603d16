// Errors for extents that are not constant after names are bound, and for negative extents.
// RUN: %mlafix-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(mlafix-specialize{bindings=H=any})"

!x = memref<?x?xf32, strided<[?, ?], offset: ?>>
mlafix.kernel @open(%x: !x {mlafix.dims = ["n", "H"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  %H = memref.dim %x, %c1 : !x
  // expected-note @below {{computed here}}
  %more = arith.addi %H, %c1 : index
  // expected-error @below {{expected every extent to be a dim of an argument, an integer argument, a constant or computed from upper-case dims, got one that is computed from other values}}
  mlafix.forall (%h) in (%more) {}
}

// -----

!x = memref<?x3xf32, strided<[?, ?], offset: ?>>
mlafix.kernel @negative(%x: !x {mlafix.dims = ["H", "two"], mlafix.access = "update"}) {
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %two = memref.dim %x, %c1 : !x
  %less = arith.subi %two, %c5 : index
  // expected-error @below {{expected extents that are not negative, got -2}}
  mlafix.forall (%h) in (%less) {}
}
