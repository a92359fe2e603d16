//===- RowLoops.h - chooses loops over the packs of a row -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PLAN_ROWLOOPS_H
#define MLAFIX_PLAN_ROWLOOPS_H

#include "dialect/Mlafix.h"
#include "lib/Machine/MachineModel.h"

namespace mlafix {

/// Returns true if the rows of `version` can be processed in loops over packs:
/// a lane has several packs of a row, no scf.while carries rows, and no groups
/// of lanes share merge loops.
bool canLoopOverPacks(KernelOp version);

/// Returns true if the rows of `version` should be processed in loops over
/// packs. Otherwise the program of a lane has each of its packs once.
///
///   - On a CPU, returns true if a row has more than `loopPacks` packs.
///   - On a GPU, returns true if a row has more than `heldElements` elements in
///     a lane, or if the program is long without loops and shorter with them.
///     Reductions that depend on each other divide the loops, which makes the
///     program longer.
///
/// Returns false if the rows cannot be processed in this way.
bool chooseRowLoops(KernelOp version, const MachineModel &machine);

} // namespace mlafix

#endif // MLAFIX_PLAN_ROWLOOPS_H
