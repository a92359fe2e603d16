//===- Strategies.h - ways to replace a grid --------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// mlafix-lower-grid calls one of these functions for each code version. Each
// function replaces the grid and records the launch geometry.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GRID_STRATEGIES_H
#define MLAFIX_TRANSFORMS_GRID_STRATEGIES_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// Replaces a dense grid on a GPU by arithmetic on thread and block indices.
/// Each row has lanes of its own.
void lowerToThreads(KernelOp kernel, ForallOp forall);

/// Replaces a dense grid on a GPU whose merge loops are shared by lane groups.
/// The lanes of a row do not synchronise, so lanes are numbered consecutively
/// across blocks. Every group of a block has `group_threads` threads (an
/// argument that the launch sets), which are the same lanes in each group. A
/// block has as many groups as fit into its threads. All threads of a block
/// take part in the exchange of chunks; those past the last row repeat the last
/// row. Only the first group executes the ops after the last merge loop.
void lowerToGroups(KernelOp kernel, ForallOp forall);

/// Replaces a ragged grid on a GPU by a scan of its predicate and a loop over
/// the selected rows.
void lowerRagged(KernelOp kernel, RaggedForallOp grid);

/// Replaces a dense grid on a CPU whose layout has several rows. The scalars of
/// these rows are computed together, before the first of the rows is processed.
void lowerToBatches(KernelOp kernel, ForallOp forall);

/// Replaces a dense or ragged grid on a CPU by loops over a range of rows.
void lowerToLoops(KernelOp kernel, mlir::Operation *grid);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GRID_STRATEGIES_H
