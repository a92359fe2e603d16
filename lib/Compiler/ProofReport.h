//===- ProofReport.h - what is proved of a kernel, as JSON ------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_COMPILER_PROOFREPORT_H
#define MLAFIX_COMPILER_PROOFREPORT_H

#include "dialect/Mlafix.h"
#include "llvm/Support/JSON.h"

namespace mlafix {

/// Asks all questions of a kernel whose states are not lowered:
/// {"kernel", "microseconds", "args", "warnings"}, of which each argument that
/// is a tensor is {"name", "answers"}, and an answer {"question", "verdict",
/// "microseconds"}. What is not proved has a "reason", an "element" where it is
/// refuted, and the place of the access: "file", "line", "column", "end_line"
/// and "end_column". An argument with accesses that are not proved to be in
/// bounds has "guarded": for each index that is checked its "dim" and its
/// place; one whose elements are read one by one has "by_element". A warning,
/// of what docs/Proofs.md says there are warnings of, is {"message"} with its
/// place.
llvm::json::Value reportProofs(KernelOp kernel);

/// Adds "file", "line", "column", "end_line" and "end_column" of `op`, if
/// known.
void addLocation(llvm::json::Object &object, mlir::Operation *op);

} // namespace mlafix

#endif // MLAFIX_COMPILER_PROOFREPORT_H
