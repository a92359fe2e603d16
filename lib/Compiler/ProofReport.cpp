//===- ProofReport.cpp - what is proved of a kernel, as JSON --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Compiler/ProofReport.h"

#include "lib/Analysis/Proofs.h"

#include <chrono>

using namespace llvm;
using namespace mlafix;

static json::Object describe(const Answer &answer) {
  json::Object object{{"question", spelling(answer.question)},
                      {"verdict", spelling(answer.verdict)},
                      {"microseconds", answer.microseconds}};
  if (!answer.reason.empty())
    object["reason"] = answer.reason;
  if (!answer.element.empty())
    object["element"] = answer.element;
  if (!answer.op)
    return object;
  if (auto place =
          answer.op->getLoc()->findInstanceOf<mlir::FileLineColLoc>()) {
    object["line"] = place.getLine();
    object["column"] = place.getColumn();
  }
  return object;
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
    if (!ofArgument.empty())
      args.push_back(json::Object{{"name", kernel.getArgName(i)},
                                  {"answers", std::move(ofArgument)}});
  }
  return json::Object{{"kernel", kernel.getSymName()},
                      {"microseconds", spent},
                      {"args", std::move(args)}};
}
