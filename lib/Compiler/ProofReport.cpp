//===- ProofReport.cpp - the proofs about a kernel as JSON ----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Compiler/ProofReport.h"

#include "dialect/LaunchChecks.h"
#include "lib/Analysis/EmptyCases.h"
#include "lib/Analysis/Proofs.h"
#include "lib/Compiler/Diagnostics.h"

#include <chrono>

using namespace llvm;
using namespace mlafix;

void mlafix::addLocation(json::Object &object, mlir::Operation *op) {
  SourceLocation place = toSourceLocation(op->getLoc());
  if (!place.isKnown())
    return;
  object["file"] = place.file;
  object["line"] = place.line;
  object["column"] = place.column;
  object["end_line"] = place.endLine;
  object["end_column"] = place.endColumn;
}

static json::Object describe(const Answer &answer) {
  json::Object object{{"question", spelling(answer.question)},
                      {"verdict", spelling(answer.verdict)},
                      {"microseconds", answer.microseconds}};
  if (!answer.reason.empty())
    object["reason"] = answer.reason;
  if (!answer.element.empty())
    object["element"] = answer.element;
  if (answer.op)
    addLocation(object, answer.op);
  return object;
}

static json::Object describeWarning(std::string message, mlir::Operation *op) {
  json::Object object{{"message", std::move(message)}};
  addLocation(object, op);
  return object;
}

static bool isReadByElement(KernelOp kernel, unsigned argument) {
  mlir::Value tensor = kernel.getBody().getArgument(argument);
  return any_of(tensor.getUsers(), [&](mlir::Operation *user) {
    if (auto state = dyn_cast<LoadStateOp>(user))
      return state.getLse() == tensor;
    auto load = dyn_cast<LoadOp>(user);
    return load && !isRowTile(load.getType());
  });
}

/// Describes the accesses of an argument that `mlafix-guard-bounds` guards.
static json::Array describeGuards(const KernelProofs &proofs,
                                  unsigned argument) {
  json::Array guarded;
  for (const OpenIndex &open : proofs.getOpenIndices()) {
    if (open.access.getArgNumber() != argument)
      continue;
    json::Object object{{"dim", open.dim}};
    addLocation(object, open.access.op);
    guarded.push_back(std::move(object));
  }
  return guarded;
}

/// Describes the author's promises, and what checks each of them.
static json::Array describePromises(KernelOp kernel) {
  json::Array promises;
  kernel.walk([&](mlir::Operation *op) {
    if (!isa<AssumeOp, DistinctOp>(op))
      return;
    auto assumption = dyn_cast<AssumeOp>(op);
    bool isChecked = assumption && isLaunchCheck(assumption);
    json::Object promise{{"text", describePromise(op)},
                         {"checked", isChecked ? "launch" : "never"}};
    addLocation(promise, op);
    promises.push_back(std::move(promise));
  });
  return promises;
}

json::Value mlafix::reportProofs(KernelOp kernel) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  KernelProofs proofs(kernel);
  json::Array warnings;
  for (const ProofWarning &warning : findWarnings(kernel, proofs.getAnswers()))
    warnings.push_back(describeWarning(warning.message, warning.op));
  for (const MadeNaN &made : findMadeNaNs(kernel))
    warnings.push_back(describeWarning(made.message(), made.op));
  double spent =
      std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  json::Array args;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    json::Array ofArgument;
    for (const Answer &answer : proofs.getAnswers())
      if (answer.argument == i)
        ofArgument.push_back(describe(answer));
    if (ofArgument.empty())
      continue;
    json::Object entry{{"name", kernel.getArgName(i)},
                       {"answers", std::move(ofArgument)}};
    if (isReadByElement(kernel, i))
      entry["by_element"] = true;
    if (json::Array guarded = describeGuards(proofs, i); !guarded.empty())
      entry["guarded"] = std::move(guarded);
    args.push_back(std::move(entry));
  }
  json::Object report{{"kernel", kernel.getSymName()},
                      {"microseconds", spent},
                      {"args", std::move(args)},
                      {"warnings", std::move(warnings)}};
  if (json::Array promises = describePromises(kernel); !promises.empty())
    report["promises"] = std::move(promises);
  return report;
}
