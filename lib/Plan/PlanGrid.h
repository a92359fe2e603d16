//===- PlanGrid.h - how a code version's grid is launched -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PLAN_PLANGRID_H
#define MLAFIX_PLAN_PLANGRID_H

#include "dialect/Plan.h"
#include "lib/Machine/MachineModel.h"

namespace mlafix {

/// The plan of `version`, a GPU's, with the fields that follow from its grid
/// and its layout, which is final. A number of the machine that no field may
/// have is an error at `version`.
llvm::FailureOr<PlanAttr> planGrid(KernelOp version,
                                   const MachineModel &machine);

} // namespace mlafix

#endif // MLAFIX_PLAN_PLANGRID_H
