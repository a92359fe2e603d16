//===- ProofReport.h - proofs and faults of a kernel as JSON ----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_COMPILER_PROOFREPORT_H
#define MLAFIX_COMPILER_PROOFREPORT_H

#include "dialect/Mlafix.h"
#include "llvm/Support/Error.h"
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

/// Adds the location of `op` to `object`, if it is known: "file", "line",
/// "column", "end_line" and "end_column".
void addLocation(llvm::json::Object &object, mlir::Operation *op);

} // namespace mlafix

#endif // MLAFIX_COMPILER_PROOFREPORT_H
