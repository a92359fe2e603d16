//===- Passes.td - passes for CPUs -------------------------*- tablegen -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_CPU_PASSES
#define MLAFIX_TRANSFORMS_CPU_PASSES

include "lib/Transforms/PassOptions.td"

def PrefetchRowsPass : Pass<"mlafix-prefetch-rows", "::mlafix::KernelOp"> {
  let summary = "rows that come out of memory are prefetched";
  let description = [{
    In the loops of `mlafix-lower-grid`, prefetches the following rows of tensors that no cache holds (a guard says
    which): the CPU's own prefetcher stops at the end of a page. A following row is prefetched if the current row is
    read.

    ```mlir
    // Before
    %v = mlafix.load %x[%t, %h] if %in : …
    // After
    scf.if %in {
      memref.prefetch %x[%tAhead, %hAhead, %c0], read, locality<3>, data : …
    }
    %v = mlafix.load %x[%t, %h] if %in : …
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def UnswitchLoopsPass : Pass<"mlafix-unswitch-loops", "::mlafix::KernelOp"> {
  let summary = "what conditions decide for every pack of a row alike is decided once";
  let description = [{
    Puts a copy of a loop over the packs of a row before the loop, for rows on which all predicates of its accesses hold
    and no `select` replaces a pack by a constant. For CPUs, which have no free predicated loads.

    ```mlir
    // Before
    scf.for %i = %c0 to %c4112 step %c16 {
      %v = scf.if %p -> (vector<16xf32>) {…}
    }
    // After
    scf.if %p {
      scf.for %i = %c0 to %c4112 step %c16 {
        %v = scf.if %true -> (vector<16xf32>) {…}
      }
    } else {
      scf.for %i = %c0 to %c4112 step %c16 {
        %v = scf.if %p -> (vector<16xf32>) {…}
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

#endif // MLAFIX_TRANSFORMS_CPU_PASSES
