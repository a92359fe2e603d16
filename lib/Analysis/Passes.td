//===- Passes.td - analyses as passes -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_PASSES
#define MLAFIX_ANALYSIS_PASSES

include "mlir/Pass/PassBase.td"

def ProvePass : Pass<"mlafix-prove", "::mlafix::KernelOp"> {
  let summary = "Prove that every output is written once, and every access in bounds";
  let description = [{
    Asks five questions of each argument: coverage, one writer, independence, written before read, bounds
    (docs/Proofs.md). Each answer is a remark: proved, promised (it holds if a launch's data is what the remark says),
    unknown (with what it depends on) or refuted (with an example). Changes nothing. The kernel is in the language's own
    ops, folded; its names may be bound or not.

    The pipeline asks with `refuse`. A kernel is then an error if it is not proved to write every element of an output,
    if two rows write one element, or if a row reads what another one writes. With `bounds = "prove"`, it is also an
    error if an access is neither proved nor promised to be in bounds. Rows that may meet, and accesses that are out of
    bounds for some sizes, are warnings, one of each per kernel. With `allow = ["races"]` or `allow = ["bounds"]` the
    kernel says that these are intended.

    ```mlir
    mlafix.forall (%t) in (%n) {
      %half = arith.floordivsi %t, %c2 : index
      mlafix.store %zero, %out[%half] : f32, memref<?xf32, strided<[?], offset: ?>>
    }
    // out: coverage: refuted: n = 2: out[1]
    // out: one writer: refuted: n = 2, i = 1: out[0]
    // out: bounds: proved
    ```
  }];
  let options = [
    Option<"refuses", "refuse", "bool", /*default=*/"false",
           "say nothing but errors, where coverage is not proved or rows race, and warnings">,
    Option<"records", "record", "bool", /*default=*/"false",
           "keep the answers as the kernel's `mlafix.proofs`, which units carry">,
    Option<"exhaustive", "exhaustive", "int64_t", /*default=*/"0",
           "also run every launch with sizes up to this, and report what it does wrong as an error">
  ];
}

def WarnNaNPass : Pass<"mlafix-warn-nan", "::mlafix::KernelOp"> {
  let summary = "warn where arithmetic on an lse makes NaN of empty rows";
  let description = [{
    A row is empty if its lse is -inf or +inf (N2), and its payload may then hold anything (N5). Outside of the algebra,
    `lse - max` of empty rows alone is -inf - -inf, and a weight of zero times such a payload may be NaN. Each op that
    makes such a NaN, if a store writes it, is a warning; docs/Proofs.md has the assumptions. An argument is an lse if a
    state op takes it for one, or if `lse` or `lses` is a word of its name. `allow = ["nan"]` of the kernel says that it
    is intended. Changes nothing.

    ```mlir
    %max = arith.maximumf %a_lse, %b_lse : f32
    %below = arith.subf %a_lse, %max : f32
    // warning: expected no NaN where no input is NaN, got -inf - -inf for a_lse = -inf, b_lse = -inf (an empty row); …
    %weight = math.exp %below : f32
    ```
  }];
}

def GuardBoundsPass : Pass<"mlafix-guard-bounds", "::mlafix::KernelOp"> {
  let summary = "narrow the predicates of accesses that are not proved to be in bounds";
  let description = [{
    Makes every access safe: if `mlafix-prove` does not prove that an index is at least 0 and below the size of its dim,
    the access's predicate is narrowed by that condition. Out of bounds, a load gives zero, a load of a state the
    identity, and a store does nothing. The `else` value of a load applies only to the kernel's own predicate. If the
    payload and the lse of a stored state need different checks, two ops store them. A proved access stays as it is, and
    so does a promised one in a kernel with `bounds = "prove"`. Promises that no launch checks (`mlafix.assume` in the
    grid, `mlafix.distinct`) and `mlafix.print` are erased.

    ```mlir
    // Before
    %row = mlafix.load %table[%t] : memref<?xi32, strided<[?], offset: ?>> -> i32
    %i = arith.index_cast %row : i32 to index
    %v = mlafix.load %x[%i] : memref<?xf32, strided<[?], offset: ?>> -> f32
    // After
    %inside = arith.cmpi ult, %i, %m : index
    %v = mlafix.load %x[%i] if %inside : memref<?xf32, strided<[?], offset: ?>> -> f32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"];
}

#endif // MLAFIX_ANALYSIS_PASSES
