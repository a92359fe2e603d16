//===- PlanRows.h - plans the rows of a CPU ---------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PLAN_PLANROWS_H
#define MLAFIX_PLAN_PLANROWS_H

#include "dialect/Plan.h"
#include "lib/Machine/MachineModel.h"

namespace mlafix {

/// Returns true if computing the scalars of many rows before the first of these
/// rows is allowed and worth it. `aliases` are the pairs of arguments that may
/// be the same tensor. Sets `reason` if the result is false.
bool canBatchScalars(KernelOp kernel, const MachineModel &machine,
                     mlir::ArrayAttr aliases, llvm::StringRef &reason);

/// Returns the final plan of `version`, a code version for a CPU. The fields
/// follow from its grid, its guards and its layout.
PlanAttr planRows(KernelOp version, const MachineModel &machine);

} // namespace mlafix

#endif // MLAFIX_PLAN_PLANROWS_H
