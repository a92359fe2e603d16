//===- ProofReport.cpp - what is proved of a kernel, as JSON --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Compiler/ProofReport.h"

#include "dialect/LaunchChecks.h"
#include "lib/Analysis/Proofs.h"

#include <chrono>

using namespace llvm;
using namespace mlafix;

/// Where the source has `loc`.
static void addPlace(json::Object &object, mlir::Location loc) {
  if (auto place = loc->findInstanceOf<mlir::FileLineColLoc>()) {
    object["line"] = place.getLine();
    object["column"] = place.getColumn();
  }
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
    addPlace(object, answer.op->getLoc());
  return object;
}

/// The accesses of an argument that get a bounds guard, and the dims that it is
/// about.
static json::Array describeGuards(const KernelProofs &proofs,
                                  unsigned argument) {
  json::Array guards;
  for (const OpenIndex &index : proofs.getOpenIndices())
    if (index.access.getArgNumber() == argument) {
      json::Object guard{{"dim", index.dim}};
      addPlace(guard, index.access.op->getLoc());
      guards.push_back(std::move(guard));
    }
  return guards;
}

/// All that the author promises, and who checks it.
static json::Array describePromises(KernelOp kernel) {
  json::Array promises;
  kernel.walk([&](mlir::Operation *op) {
    auto assumption = dyn_cast<AssumeOp>(op);
    auto distinct = dyn_cast<DistinctOp>(op);
    if (!assumption && !distinct)
      return;
    std::string text;
    if (assumption)
      text = assumption.getText().str();
    else
      text =
          "the entries of " +
          kernel
              .getArgName(getKernelArgument(distinct.getTable()).getArgNumber())
              .str() +
          " that are not negative are distinct";
    bool isChecked = assumption && isLaunchCheck(assumption);
    json::Object promise{{"text", text},
                         {"checked", isChecked ? "launch" : "never"}};
    addPlace(promise, op->getLoc());
    promises.push_back(std::move(promise));
  });
  return promises;
}

json::Value mlafix::reportProofs(KernelOp kernel) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  KernelProofs proofs(kernel);
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
    json::Object argument{{"name", kernel.getArgName(i)},
                          {"answers", std::move(ofArgument)}};
    if (json::Array guards = describeGuards(proofs, i); !guards.empty())
      argument["guards"] = std::move(guards);
    args.push_back(std::move(argument));
  }
  json::Object report{{"kernel", kernel.getSymName()},
                      {"microseconds", spent},
                      {"args", std::move(args)}};
  if (json::Array promises = describePromises(kernel); !promises.empty())
    report["promises"] = std::move(promises);
  return report;
}
