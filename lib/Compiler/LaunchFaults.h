//===- LaunchFaults.h - what a launch does wrong, as JSON -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_COMPILER_LAUNCHFAULTS_H
#define MLAFIX_COMPILER_LAUNCHFAULTS_H

#include "dialect/Mlafix.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace mlafix {

/// Runs the rows of one launch on the host, by the kernel's own ops, and says
/// what they do that no kernel may. `launch` is JSON, an object with each
/// argument's name: of a tensor {"sizes": […]}, with "elements": […] (the last
/// dim varies fastest) where the kernel reads them one by one, and null for one
/// that is omitted; of a scalar its value. The result: {"faults",
/// "unknown_rows", "is_whole"}, each fault {"question", "argument", "element",
/// "row"} with the place of the access. Error: `launch` is something else.
llvm::Expected<llvm::json::Value> findLaunchFaults(KernelOp kernel,
                                                   llvm::StringRef launch);

} // namespace mlafix

#endif // MLAFIX_COMPILER_LAUNCHFAULTS_H
