//===- Passes.td - passes for CPUs -------------------------*- tablegen -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_CPU_PASSES
#define MLAFIX_TRANSFORMS_CPU_PASSES

include "lib/Transforms/PassOptions.td"

def BatchRowsPass : Pass<"mlafix-batch-rows", "::mlafix::KernelOp"> {
  let summary = "the scalars of many rows are computed at once";
  let description = [{
    In a layout of several rows, the scalars of that many rows along the outermost extent are computed first, as
    vectors, for up to `strip` positions along the inner extents. Buffers hold them until these rows are moved. Rows
    that make no whole batch are computed one by one. Adds the arguments `begin` and `end`, the range of rows of a call,
    and records the geometry.

    ```mlir
    // Before, with #mlafix.layout<lanes = 1, packs = 8, pack = 16, rows = 16>
    mlafix.forall (%t, %h) in (%n, %c48) {
      %w = math.exp2 %s : f32
      …
    }
    // After
    scf.for %base = %begin to %last step %c768 {
      scf.for %i = %c0 to %c48 step %c1 {
        %w = math.exp2 %s : vector<16xf32>
        …
        memref.store %w0, %buffer[%i] : memref<768xf32>
      }
      scf.for %lane = %c0 to %c16 step %c1 {
        scf.for %i = %c0 to %c48 step %c1 {
          %w = memref.load %buffer[%position] : memref<768xf32>
          …
        }
      }
    }
    scf.for %row = %last to %end step %c1 {…}
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def GridToLoopsPass : Pass<"mlafix-grid-to-loops", "::mlafix::KernelOp"> {
  let summary = "a grid becomes loops over a range of rows";
  let description = [{
    On a CPU a kernel computes the rows of the range `[begin, end)`, which two new arguments give, with one lane each.
    In a ragged grid, every call scans all segments and computes those of their rows that lie in its range. Records the
    geometry.

    ```mlir
    // Before
    mlafix.forall (%t, %h) in (%n, %c16) {…}
    // After
    scf.for %row = %begin to %end step %c1 {
      %h = arith.remui %row, %c16 : index
      %t = arith.divui %row, %c16 : index
      …
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def PrefetchRowsPass : Pass<"mlafix-prefetch-rows", "::mlafix::KernelOp"> {
  let summary = "rows that come out of memory are prefetched";
  let description = [{
    In the loops of `mlafix-batch-rows`, prefetches the following rows of tensors that no cache holds (a guard says
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
