//===- LaneConflicts.h - where the lanes of a row synchronise ---*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LAYOUT_LANECONFLICTS_H
#define MLAFIX_TRANSFORMS_LAYOUT_LANECONFLICTS_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// True if two accesses may be of the same memory, by different lanes, one of
/// them a write. Lanes move their own elements of a row, and one lane
/// stores all scalars, or the element of a group, in program order; anything
/// else may meet another lane's access, of the same argument or of one that may
/// be the same tensor (N11).
bool mayConflict(KernelOp kernel, const MemoryAccess &a, const MemoryAccess &b);

/// True if two accesses conflict with the same accesses of other lanes.
bool conflictAlike(const MemoryAccess &a, const MemoryAccess &b);

/// True if lanes of a row wait for each other or exchange values.
bool lanesSynchronise(KernelOp kernel);

/// The same, of a kernel that only `aliases`, pairs of arguments, can make one
/// tensor of two: what a launch lets through.
bool lanesSynchronise(KernelOp kernel, mlir::ArrayAttr aliases);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LAYOUT_LANECONFLICTS_H
