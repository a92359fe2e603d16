//===- RowsAhead.h - rows of later blocks in the cache ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GRID_ROWSAHEAD_H
#define MLAFIX_TRANSFORMS_GRID_ROWSAHEAD_H

#include "lib/Transforms/Grid/Thread.h"

namespace mlafix {

/// Loads of whole rows that only depend on the grid's indices, and the total
/// bytes of these rows.
struct RowsOfGrid {
  llvm::SmallVector<LoadOp> loads;
  int64_t bytes = 0;
};
RowsOfGrid findRowsOfGrid(KernelOp kernel, ForallOp forall);

/// If the plan says so, makes each block of `forall` prefetch a later block's
/// row into the cache, after its own loads. While a block computes, its
/// multiprocessor has no room for another block that would load that row. Must
/// be built before the grid's body is inlined. `row` of `total` is the block's
/// row, and `lane` the thread's lane.
void prefetchRowsAhead(mlir::OpBuilder &b, KernelOp kernel, ForallOp forall,
                       GridRows &rows, mlir::Value row, mlir::Value total,
                       mlir::Value lane);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GRID_ROWSAHEAD_H
