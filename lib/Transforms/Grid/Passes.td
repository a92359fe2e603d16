//===- Passes.td - the grid becomes threads or loops -------*- tablegen -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GRID_PASSES
#define MLAFIX_TRANSFORMS_GRID_PASSES

include "mlir/Pass/PassBase.td"

def LowerGridPass : Pass<"mlafix-lower-grid", "::mlafix::KernelOp"> {
  let summary = "a grid becomes threads or loops, as its plan says";
  let description = [{
    Replaces the grid of a planned kernel, and records the launch geometry. There are five strategies.

    **Threads**, for a dense grid on a GPU. `mlafix.forall` becomes the arithmetic from thread and block indices to row
    indices. Its body becomes a `mlafix_thread.row`, guarded by the condition that the row exists. If the target has
    dependent launch, every thread waits for the preceding grid before the row's program. Records the launch geometry on
    the kernel. The plan decides four things:

    - If some rows may stay unchanged, blocks 0, 1, 2, … take positions 0, n/2, 1, n/2 + 1, …, so that blocks with
      little to do run beside others.
    - If rows that differ in the first index alone have consecutive scalars, `row_bundle` such rows follow each other, so
      that a block uses all of the lines that it loads. The strides of the launch decide. Rows that are reduced, or
      stored in another width, are not reordered.
    - Before the wait, the first thread of each block prefetches a cache line of small tensors
      (`mlafix_thread.table_lines`): of integers, and of floats whose lines span several rows.
    - A block that reduces a long row prefetches, behind its own loads (`mlafix-hoist-loads`), the row of the block that
      is `rows_ahead` blocks further on. While a block computes, its multiprocessor has no room for a block that would
      load that row.

    ```mlir
    // Before, with layout = <lanes = 16, packs = 1, pack = 8, rows = 8>
    mlafix.forall (%t) in (%n) {
      %v = mlafix.load %x[%t] : …
    }
    // After
    %id = nvvm.read.ptx.sreg.tid.x : i32
    %group = arith.divui %id, %c16 : i32
    %lane = arith.index_castui (arith.andi %id, %c15) : i32 to index
    %mask = arith.shli %c65535, (arith.andi %id, %c16) : i32
    %row = arith.addi (arith.muli %block, %c8), %group : i32
    %isRow = arith.cmpi ult, %row, %rows : i32
    scf.if %isRow {
      mlafix_thread.row lane %lane mask %mask {
        %v = mlafix.load %x[%t] : …
      }
    }
    ```

    **Groups of lanes**, for a dense grid on a GPU whose layout has several groups. Its rows have merge loops. The lanes of a row do not synchronise, so the
    grid's lanes are numbered consecutively, independent of blocks. Each group of a block has `group_threads` threads, a
    parameter of the launch, and covers the same lanes. A block has as many groups as its threads suffice for. All
    threads of a block take part in the exchange of chunks (`mlafix-lower-merge-loops`); those past the last row repeat
    the last row. The first group computes what follows the last merge loop. Each thread of a block's first warp
    prefetches a line of small tensors.

    ```mlir
    // Before, with layout = <lanes = 64, packs = 2, pack = 4, rows = 1, groups = 16>
    mlafix.forall (%t) in (%n) {
      %m, %s, %acc = mlafix.merge_loop …
      mlafix.store %out, %x[%t] : …
    }
    // After
    mlafix_thread.row lane %lane groups(%group, %groups, %group_threads, %member) {
      %m, %s, %acc = mlafix.merge_loop …
      scf.if %isStored {
        mlafix.store %out, %x[%t] : …
      }
    }
    ```

    **A scan**, for a ragged grid on a GPU. Every block scans the predicate over all segments, in chunks of two segments per thread. If no segment of a chunk is
    selected, the chunk ends after one reduction. Otherwise the prefix sums of the selected segments' lengths go to
    shared memory, and blocks take the rows of these segments in turn. If rows are only stored, neighbouring blocks take
    neighbouring inner indices, as many as they have lane groups for. All blocks together then write a small window of
    memory. Scalars that only depend on indices are stored in a loop of their own, one per thread. Records the launch
    geometry on the kernel.

    ```mlir
    // Before
    mlafix.ragged_forall (%seg, %row, %h) in (%cu_seqlens, %n, %H) : … where {
      …
      mlafix.yield %dead : i1
    } do {
      mlafix.store %zeros, %out[%row, %h] : …
    }
    // After
    scf.for %chunk = %c0 to %segments step %c512 {
      …
      %any = nvvm.barrier #nvvm.reduction<or> %selected -> i32
      scf.if %isAny {
        …
        scf.for %tile = %first to %tiles step %blocks {
          mlafix_thread.row lane %lane mask %mask {
            mlafix.store %zeros, %out[%row, %h] : …
          }
        }
      }
    }
    ```

    **Batches**, for a dense grid on a CPU. In a layout of several rows, the scalars of that many rows along the outermost extent are computed first, as
    vectors, for up to `strip_rows` positions along the inner extents. Buffers hold them until these rows are moved. Rows
    that make no whole batch are computed one by one. Adds the arguments `begin` and `end`, the range of rows of a call,
    and records the geometry.

    ```mlir
    // Before, with layout = <lanes = 1, packs = 8, pack = 16, rows = 16>
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

    **Loops**, for all other grids on a CPU. A call computes the rows of the range `[begin, end)`, which two new arguments give, with one lane each.
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
  let dependentDialects = [
    "::mlafix::MlafixThreadDialect",
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

#endif // MLAFIX_TRANSFORMS_GRID_PASSES
