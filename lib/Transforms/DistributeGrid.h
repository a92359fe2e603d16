//===- DistributeGrid.h - what dense and ragged grids share -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_DISTRIBUTEGRID_H
#define MLAFIX_TRANSFORMS_DISTRIBUTEGRID_H

#include "lib/Transforms/Distribute.h"

namespace mlafix {

/// An extent of a grid, or a list of them, as the geometry names it.
ExtentAttr describeExtent(mlir::Value extent);
llvm::SmallVector<ExtentAttr> describeExtents(mlir::ValueRange extents);

/// Moves the ops of a grid's region, but for its terminator, to the insertion
/// point, with `indices` for its arguments.
void inlineRow(mlir::OpBuilder &b, mlir::Block &row, mlir::ValueRange indices);

/// A loop over first, first + step, … below `extent`.
void buildLoop(mlir::OpBuilder &b, mlir::Location loc, mlir::Value first,
               mlir::Value extent, mlir::Value step,
               llvm::function_ref<void(mlir::Value)> body);

/// The names of a thread on a GPU.
struct Thread {
  mlir::Value id;    ///< in its block, i32
  mlir::Value group; ///< of the row that it works on, within the block, i32
  RowContext context;
};
Thread buildThread(mlir::OpBuilder &b, mlir::Location loc, LayoutAttr layout);

/// Where the target can: waits for the grid before this one, then lets the next
/// one begin. To be executed by every thread, before its first access of memory
/// and before it may end: a grid that ends without having waited can be
/// complete before its predecessor is.
void buildDependency(mlir::OpBuilder &b, mlir::Location loc, KernelOp kernel);

/// Where segment `segment` of a ragged grid begins, and the one before it ends:
/// an element of cu_seqlens, as an index.
mlir::Value loadBoundary(mlir::OpBuilder &b, RaggedForallOp grid,
                         mlir::Value segment);
/// `selected`, unless a segment is malformed: 0 <= start <= end <= the grid's
/// rows.
mlir::Value selectWellFormed(mlir::OpBuilder &b, RaggedForallOp grid,
                             mlir::Value selected, mlir::Value start,
                             mlir::Value end);

/// The two ragged grids: on a GPU a scan and a loop over the selected rows, on
/// a CPU a loop over the segments for rows `begin` to `end`.
RowContext distributeRaggedGPU(KernelOp kernel, RaggedForallOp grid);
RowContext distributeRaggedCPU(KernelOp kernel, RaggedForallOp grid,
                               mlir::Value begin, mlir::Value end);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_DISTRIBUTEGRID_H
