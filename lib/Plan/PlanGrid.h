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
/// and its layout, which is final, once `adapt` has changed those that a user
/// gives. A value that its field or the code version may not have is an error
/// at `version`.
llvm::FailureOr<PlanAttr>
planGrid(KernelOp version, const MachineModel &machine,
         llvm::function_ref<void(llvm::MutableArrayRef<int64_t>)> adapt);

} // namespace mlafix

#endif // MLAFIX_PLAN_PLANGRID_H
