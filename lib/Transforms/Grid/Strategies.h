//===- Strategies.h - the ways to replace a grid ----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// mlafix-lower-grid takes one of these for each code version. Each replaces the
// grid and records the launch geometry.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GRID_STRATEGIES_H
#define MLAFIX_TRANSFORMS_GRID_STRATEGIES_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// A dense grid on a GPU whose rows have lanes of their own: arithmetic on
/// thread and block indices.
void lowerToThreads(KernelOp kernel, ForallOp forall);

/// A dense grid on a GPU whose merge loops are shared by lane groups. The lanes
/// of a row do not synchronise, so lanes are numbered consecutively across
/// blocks. A block has as many groups of the same lanes as fit its threads,
/// with `group_threads` (set by the launch) each. All threads of a block take
/// part in the exchange of chunks: those past the last row repeat it. The
/// first group executes what follows.
void lowerToGroups(KernelOp kernel, ForallOp forall);

/// A ragged grid on a GPU: a scan of its predicate, and a loop over the
/// selected rows.
void lowerRagged(KernelOp kernel, RaggedForallOp grid);

/// A dense grid on a CPU whose layout has several rows. Their scalars are
/// computed together before the first row is moved.
void lowerToBatches(KernelOp kernel, ForallOp forall);

/// Any grid on a CPU: loops over a range of rows.
void lowerToLoops(KernelOp kernel, mlir::Operation *grid);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GRID_STRATEGIES_H
