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

/// The tensors of which `forall` loads scalars alone, and whose lines are worth
/// a prefetch: all of integers, since they lead to rows, and those of floats of
/// which a block loads many lines, because they are transposed or because a row
/// has a block for its states.
llvm::SetVector<mlir::BlockArgument> collectTables(KernelOp kernel,
                                                   ForallOp forall);

/// Builds an i1 from the launch's strides: true if the scalars of rows that
/// differ in the first index alone are adjacent, as in an lse of [H, n] in a
/// grid of (n, H). Null where findTransposed() finds none.
mlir::Value buildIsTransposed(mlir::OpBuilder &b, KernelOp kernel,
                              ForallOp forall);

/// Builds the prefetches of the tensors that collectTables() finds, if the plan
/// asks for them. The first thread of each block prefetches one line of each
/// tensor; in layouts of lane groups, which have fewer blocks, each thread of
/// the first warp does. Every thread executes this before it waits for the
/// preceding grid.
void prefetchTables(mlir::OpBuilder &b, KernelOp kernel, ForallOp forall);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GRID_ROWORDER_H
