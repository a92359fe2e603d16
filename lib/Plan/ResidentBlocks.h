//===- ResidentBlocks.h - blocks that a multiprocessor holds ----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A plan says how many blocks a multiprocessor is to hold, or that the number
// follows from registers, which are known once code has been generated.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PLAN_RESIDENTBLOCKS_H
#define MLAFIX_PLAN_RESIDENTBLOCKS_H

#include "dialect/Plan.h"
#include "lib/Machine/MachineModel.h"

namespace mlafix {

/// The field `resident` for `version`, which has this layout.
int64_t planResident(KernelOp version, LayoutAttr layout,
                     const MachineModel &machine);

/// The number of blocks that a multiprocessor should hold for `kernel`, a
/// thread's program for a GPU. 0: no requirement.
int64_t getResidentBlocks(KernelOp kernel);

/// Returns `variant` with the number of blocks that fit into a multiprocessor
/// if the code takes `registers` per thread. Unchanged if its geometry does not
/// need that number.
VariantAttr fitBlocks(VariantAttr variant, const MachineModel &machine,
                      int64_t registers);

} // namespace mlafix

#endif // MLAFIX_PLAN_RESIDENTBLOCKS_H
