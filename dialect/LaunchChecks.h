//===- LaunchChecks.h - conditions that a launch checks ---------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIALECT_LAUNCHCHECKS_H
#define MLAFIX_DIALECT_LAUNCHCHECKS_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// Returns true if `op` precedes the grid, so that each launch checks the
/// condition of `op`.
bool isLaunchCheck(AssumeOp op);

/// Returns the condition of `op` as a unit stores it (docs/UnitFormat.md,
/// "checks"). Returns null if a launch cannot compute the condition from
/// integer arguments and sizes, or would need more than limits::checkSteps
/// steps.
mlir::DictionaryAttr buildLaunchCheck(AssumeOp op);

/// Returns, as a unit stores it, the condition that the size of `dim` is at
/// most the bound that the kernel's `most` gives for `dim`. The bound must
/// exist. Returns null if the size is static.
mlir::DictionaryAttr buildLaunchCheck(KernelOp kernel, llvm::StringRef dim);

} // namespace mlafix

#endif // MLAFIX_DIALECT_LAUNCHCHECKS_H
