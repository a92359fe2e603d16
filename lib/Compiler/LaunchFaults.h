//===- LaunchFaults.h - the violations of a launch as JSON ------*- C++ -*-===//
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

/// Interprets the rows of one launch on the host and reports violations.
/// `launch` is a JSON object with one entry per argument. A tensor is {"sizes":
/// […]}, with "elements": […] in row-major order if the kernel reads it element
/// by element. An omitted tensor is null. A scalar is its value. The optional
/// entry "against the reference" holds the expected contents of outputs:
/// {"the tolerance": …, NAME: […]}.
///
/// Returns {"faults", "printed", "printed_more", "unknown_rows", "is_whole"}.
/// Each fault is {"question", "argument", "element", "row", "message"} and the
/// location of the access, promise or operation to blame. Returns an error if
/// `launch` is malformed.
llvm::Expected<llvm::json::Value> findLaunchFaults(KernelOp kernel,
                                                   llvm::StringRef launch);

} // namespace mlafix

#endif // MLAFIX_COMPILER_LAUNCHFAULTS_H
