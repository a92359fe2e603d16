//===- PlanGrid.h - plans the launch of a code version's grid ---*- C++ -*-===//
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

/// Returns the final plan of `version`, a code version for a GPU. The fields
/// follow from its grid and its final layout; `adapt` then sets the fields that
/// a user gives. Emits an error at `version` if a value is not allowed for its
/// field or for the code version.
llvm::FailureOr<PlanAttr>
planGrid(KernelOp version, const MachineModel &machine,
         llvm::function_ref<void(llvm::MutableArrayRef<int64_t>)> adapt);

} // namespace mlafix

#endif // MLAFIX_PLAN_PLANGRID_H
