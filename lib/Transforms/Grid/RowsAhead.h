//===- RowsAhead.h - prefetch the rows of later blocks ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GRID_ROWSAHEAD_H
#define MLAFIX_TRANSFORMS_GRID_ROWSAHEAD_H

#include "lib/Transforms/Grid/Thread.h"

namespace mlafix {

/// Loads of whole rows that depend only on the grid's indices. `bytes` is the
/// total size of these rows.
struct RowsOfGrid {
  llvm::SmallVector<LoadOp> loads;
  int64_t bytes = 0;
};
RowsOfGrid findRowsOfGrid(KernelOp kernel, ForallOp forall);

/// Makes each block of `forall` prefetch the row of a later block into the
/// cache, after the block's own loads, if the plan asks for this prefetch.
/// Without it, nothing would load that row while the block computes, since the
/// multiprocessor has no room for another block. Must be called before the
/// grid's body is inlined. `row` is the block's row, `total` the number of
/// rows, and `lane` the thread's lane.
void prefetchRowsAhead(mlir::OpBuilder &b, KernelOp kernel, ForallOp forall,
                       GridRows &rows, mlir::Value row, mlir::Value total,
                       mlir::Value lane);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GRID_ROWSAHEAD_H
