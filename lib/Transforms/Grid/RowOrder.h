//===- RowOrder.h - order of rows, prefetches of scalars --------*- C++ -*-===//
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

/// Returns an access to scalars that may be adjacent in memory for rows which
/// differ only in the first index. Returns nullopt if `forall` has no such
/// access, or if its rows must keep their order.
std::optional<MemoryAccess> findTransposed(KernelOp kernel, ForallOp forall);

/// Returns the conditions under which `forall` stores rows. Other rows stay
/// unchanged.
llvm::SetVector<mlir::Value> getRowConditions(ForallOp forall);

/// Returns the tensors from which `forall` loads only scalars and whose cache
/// lines are worth a prefetch. Integer tensors are among them, since they often
/// contain indices of rows. A float tensor is among them if each block loads
/// many of the tensor's lines: because the tensor is transposed, or because a
/// block loads all states of a row.
llvm::SetVector<mlir::BlockArgument> collectTables(KernelOp kernel,
                                                   ForallOp forall);

/// Builds an i1 from the strides at launch. It is true if scalars are adjacent
/// for rows that differ only in the first index, as in an lse of [H, n] in a
/// grid of (n, H). Returns null if findTransposed() finds no access.
mlir::Value buildIsTransposed(mlir::OpBuilder &b, KernelOp kernel,
                              ForallOp forall);

/// Builds prefetches of the tensors that collectTables() returns, if the plan
/// asks for them. The first thread of each block prefetches one line of each
/// tensor. In layouts of lane groups, which have fewer blocks, each thread of
/// the first warp does. The prefetches must be built before the wait for the
/// preceding grid.
void prefetchTables(mlir::OpBuilder &b, KernelOp kernel, ForallOp forall);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GRID_ROWORDER_H
