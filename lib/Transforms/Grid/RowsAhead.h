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

/// Loads of whole rows that the grid's indices tell, and the bytes of them all.
struct RowsOfGrid {
  llvm::SmallVector<LoadOp> loads;
  int64_t bytes = 0;
};
RowsOfGrid findRowsOfGrid(KernelOp kernel, ForallOp forall);

/// If the plan says so, has each block of `forall` ask the cache, behind its
/// own loads, for the row of a block further on: while it computes, its
/// multiprocessor has no room for a block that would load that row. To be built
/// before the grid's body is inlined. `row` of `total` is the block's, and
/// `lane` the thread's.
void prefetchRowsAhead(mlir::OpBuilder &b, KernelOp kernel, ForallOp forall,
                       GridRows &rows, mlir::Value row, mlir::Value total,
                       mlir::Value lane);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GRID_ROWSAHEAD_H
