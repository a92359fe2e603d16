//===- ResidentBlocks.h - blocks that a multiprocessor holds ----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A plan states how many blocks a multiprocessor must hold. Alternatively, it
// lets the number follow from registers, which are known after code generation.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PLAN_RESIDENTBLOCKS_H
#define MLAFIX_PLAN_RESIDENTBLOCKS_H

#include "dialect/Plan.h"
#include "lib/Machine/MachineModel.h"

namespace mlafix {

/// Returns the field `resident` for `version` with this layout.
int64_t planResident(KernelOp version, LayoutAttr layout,
                     const MachineModel &machine);

/// Returns the number of blocks of `kernel`, a thread's program for a GPU, that
/// a multiprocessor should hold. Returns 0 if there is no requirement.
int64_t getResidentBlocks(KernelOp kernel);

/// Returns `variant` with the number of blocks that fit into a multiprocessor
/// if each thread takes `registers`. If its geometry does not need that number,
/// returns `variant` unchanged.
VariantAttr fitBlocks(VariantAttr variant, const MachineModel &machine,
                      int64_t registers);

} // namespace mlafix

#endif // MLAFIX_PLAN_RESIDENTBLOCKS_H
