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
    Asks five questions of each argument: coverage, one writer, independence, written before read, bounds (docs/Proofs.md). Each answer is a remark: proved, promised
    (it holds if a launch's data is what the remark says), unknown (with what it depends on) or refuted (with an example). Changes nothing.
    The pipeline asks with `refuse`: a kernel that leaves an element of an output unwritten, or that writes one from two rows, is an error. The kernel is in the language's own
    ops, folded; its names may be bound or not.

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
           "say nothing but errors, where coverage or one writer is refuted">,
    Option<"records", "record", "bool", /*default=*/"false",
           "keep the answers as the kernel's `mlafix.proofs`, which units carry">,
    Option<"exhaustive", "exhaustive", "int64_t", /*default=*/"0",
           "also run every launch with sizes up to this, and report what it does wrong as an error">
  ];
}

#endif // MLAFIX_ANALYSIS_PASSES
