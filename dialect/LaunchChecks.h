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

/// True if `op` stands before the grid, so that a launch checks it.
bool isLaunchCheck(AssumeOp op);

/// The condition of `op` as units carry it (docs/UnitFormat.md: checks); null
/// where a launch cannot compute it of integer arguments and sizes, or only in
/// more than limits::checkSteps steps.
mlir::DictionaryAttr buildLaunchCheck(AssumeOp op);

/// The condition that a dim is within its bound; null where its size is known.
mlir::DictionaryAttr buildLaunchCheck(KernelOp kernel, llvm::StringRef dim);

} // namespace mlafix

#endif // MLAFIX_DIALECT_LAUNCHCHECKS_H
