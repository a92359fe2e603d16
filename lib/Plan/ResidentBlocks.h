//===- ResidentBlocks.h - blocks that a multiprocessor holds ----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A plan states how many blocks a multiprocessor must hold, or lets this number
// follow from the registers of a thread, which code generation determines.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PLAN_RESIDENTBLOCKS_H
#define MLAFIX_PLAN_RESIDENTBLOCKS_H

#include "dialect/Plan.h"
#include "lib/Machine/MachineModel.h"

namespace mlafix {

/// Returns the value that the plan's field `resident` gets if `version` is
/// given the layout `layout`.
int64_t planResident(KernelOp version, LayoutAttr layout,
                     const MachineModel &machine);

/// Returns the number of blocks of `kernel`, a thread's program for a GPU, that
/// a multiprocessor should hold. Returns 0 if there is no requirement.
int64_t getResidentBlocks(KernelOp kernel);

/// Returns `variant` with the number of blocks that fit into a multiprocessor
/// if each thread takes `registers`. Returns `variant` unchanged if its
/// geometry does not ask for this number.
VariantAttr fitBlocks(VariantAttr variant, const MachineModel &machine,
                      int64_t registers);

} // namespace mlafix

#endif // MLAFIX_PLAN_RESIDENTBLOCKS_H
