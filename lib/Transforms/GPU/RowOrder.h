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

/// True if the scalars of rows that differ in the first index alone are
/// consecutive in memory, i1: a launch's strides say so. An lse of [H, n] in a
/// grid of (n, H) is an example. Null where no scalar of `forall` may be stored
/// so, or the order of rows is not free.
mlir::Value buildIsTransposed(mlir::OpBuilder &b, KernelOp kernel,
                              ForallOp forall);

/// Prefetches the small tensors of which the rows of `forall` load scalars: the
/// first thread of each block one line of each, until all lines are prefetched;
/// in a layout of lane groups, whose blocks may be fewer, each thread of its
/// first warp. To be executed by every thread before it waits for the preceding
/// grid.
void prefetchTables(mlir::OpBuilder &b, KernelOp kernel, ForallOp forall);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GPU_ROWORDER_H
