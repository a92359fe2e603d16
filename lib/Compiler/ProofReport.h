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

/// Answers all questions about a kernel whose states are not lowered:
/// {"kernel", "microseconds", "args", "warnings"}. Each tensor argument is
/// {"name", "answers"}, each answer {"question", "verdict", "microseconds"}. An
/// answer that is not proved has a "reason", an "element" if refuted, and the
/// location of the access: "file", "line", "column", "end_line" and
/// "end_column". An argument with accesses not proved in bounds has "guarded":
/// "dim" and location of each guarded index. An argument read element by
/// element has "by_element". A warning (docs/Proofs.md lists them) is
/// {"message"} with a location.
llvm::json::Value reportProofs(KernelOp kernel);

/// Adds "file", "line", "column", "end_line" and "end_column" of `op` if known.
void addLocation(llvm::json::Object &object, mlir::Operation *op);

} // namespace mlafix

#endif // MLAFIX_COMPILER_PROOFREPORT_H
