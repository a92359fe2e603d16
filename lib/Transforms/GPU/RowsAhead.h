//===- RowsAhead.h - rows of later blocks in the cache ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GPU_ROWSAHEAD_H
#define MLAFIX_TRANSFORMS_GPU_ROWSAHEAD_H

#include "lib/Transforms/GPU/Thread.h"

namespace mlafix {

/// Makes each block of `forall` that reduces a long row prefetch the row of a
/// later block, behind its own loads: while it computes, its multiprocessor has
/// no room for the block that would load that row. Build this before the grid's
/// body is inlined. `row` of `total` is the block's row, `lane` the thread's
/// lane.
void prefetchRowsAhead(mlir::OpBuilder &b, KernelOp kernel, ForallOp forall,
                       GridRows &rows, mlir::Value row, mlir::Value total,
                       mlir::Value lane);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GPU_ROWSAHEAD_H
