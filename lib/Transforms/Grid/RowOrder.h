//===- RowOrder.h - rows that share cache lines of scalars ------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GRID_ROWORDER_H
#define MLAFIX_TRANSFORMS_GRID_ROWORDER_H

#include "dialect/Mlafix.h"
#include "llvm/ADT/SetVector.h"

namespace mlafix {

/// An access to scalars of which those of rows that differ in the first index
/// alone may be consecutive in memory. None if `forall` has no such access, or
/// the order of its rows is not free.
std::optional<MemoryAccess> findTransposed(KernelOp kernel, ForallOp forall);

/// The conditions that decide whether rows are stored or unchanged.
llvm::SetVector<mlir::Value> getRowConditions(ForallOp forall);

/// The tensors that `forall` loads scalars of, and nothing else, beside rows.
/// Integers lead to rows. Floats arrive with them: of these, tensors of which a
/// block loads many lines, where rows are transposed or a row has a block for
/// its states.
llvm::SetVector<mlir::BlockArgument> collectTables(KernelOp kernel,
                                                   ForallOp forall);

/// True if the scalars of rows that differ in the first index alone are
/// consecutive in memory, i1: a launch's strides say so. An lse of [H, n] in a
/// grid of (n, H) is an example. Null where findTransposed() finds none.
mlir::Value buildIsTransposed(mlir::OpBuilder &b, KernelOp kernel,
                              ForallOp forall);

/// If the plan says so, prefetches the tensors that collectTables() finds: the
/// first thread of each block one line of each, until all lines are prefetched;
/// in a layout of lane groups, whose blocks may be fewer, each thread of its
/// first warp. To be executed by every thread before it waits for the preceding
/// grid.
void prefetchTables(mlir::OpBuilder &b, KernelOp kernel, ForallOp forall);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GRID_ROWORDER_H
