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

/// An access to scalars that may be consecutive in memory for rows which differ
/// only in the first index. nullopt if `forall` has none, or if the order of
/// its rows is not free.
std::optional<MemoryAccess> findTransposed(KernelOp kernel, ForallOp forall);

/// The conditions that decide whether rows are stored or unchanged.
llvm::SetVector<mlir::Value> getRowConditions(ForallOp forall);

/// The tensors from which `forall` only loads scalars, and whose lines are
/// worth a prefetch. Integer tensors are among them, since they lead to rows. A
/// float tensor is among them if a block loads many lines of it, because it is
/// transposed or because a row has a block for its states.
llvm::SetVector<mlir::BlockArgument> collectTables(KernelOp kernel,
                                                   ForallOp forall);

/// Builds an i1 from the launch's strides: true if scalars are adjacent for
/// rows that differ only in the first index, as in an lse of [H, n] in a grid
/// of (n, H). Null if findTransposed() finds no access.
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
