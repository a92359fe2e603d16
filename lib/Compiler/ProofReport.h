//===- ProofReport.h - the proofs about a kernel as JSON --------*- C++ -*-===//
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

/// Answers all questions of docs/Proofs.md about a kernel whose states are not
/// lowered. Returns {"kernel", "microseconds", "args", "warnings"}, and
/// "promises" if the author made any. Where an object below has a location, it
/// has the members that addLocation() adds.
///
/// Each element of "args" is {"name", "answers"} of a tensor argument. It also
/// has "guarded" if some accesses are not proved in bounds: the "dim" and the
/// location of each guarded index. It has "by_element" if the tensor is read
/// element by element.
///
/// Each answer is {"question", "verdict", "microseconds"}. An answer that is
/// not proved also has a "reason" and the location of the access. A refuted
/// answer has an "element". A warning (docs/Proofs.md lists them) is
/// {"message"} with a location. A promise is {"text", "checked"} with a
/// location.
llvm::json::Value reportProofs(KernelOp kernel);

/// Adds the location of `op` to `object`, if it is known: "file", "line",
/// "column", "end_line" and "end_column".
void addLocation(llvm::json::Object &object, mlir::Operation *op);

} // namespace mlafix

#endif // MLAFIX_COMPILER_PROOFREPORT_H
