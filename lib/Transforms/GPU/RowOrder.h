//===- RowOrder.h - rows that share cache lines of scalars ------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GPU_ROWORDER_H
#define MLAFIX_TRANSFORMS_GPU_ROWORDER_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// An i1: by the launch's strides, scalars of rows that differ only in the
/// grid's first index are consecutive in memory, as for an lse of [H, n] in a
/// grid of (n, H). Null if no scalar of `forall` can be stored that way, or if
/// the row order is not free.
mlir::Value buildIsTransposed(mlir::OpBuilder &b, KernelOp kernel,
                              ForallOp forall);

/// Prefetches the small tensors from which the rows of `forall` load scalars:
/// the first thread of each block prefetches one line of each, until all are
/// covered. In a layout of lane groups, which may have fewer blocks, each
/// thread of the first warp does. Every thread must execute this before the
/// wait for the preceding grid.
void prefetchTables(mlir::OpBuilder &b, KernelOp kernel, ForallOp forall);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GPU_ROWORDER_H
