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

/// True if `op` precedes the grid, so that launches check it.
bool isLaunchCheck(AssumeOp op);

/// The condition of `op` in the form of units (docs/UnitFormat.md: checks).
/// Null if a launch cannot compute it from integer arguments and sizes within
/// limits::checkSteps steps.
mlir::DictionaryAttr buildLaunchCheck(AssumeOp op);

/// The condition that a dim is within its bound; null if its size is static.
mlir::DictionaryAttr buildLaunchCheck(KernelOp kernel, llvm::StringRef dim);

} // namespace mlafix

#endif // MLAFIX_DIALECT_LAUNCHCHECKS_H
