//===- Prove.cpp - reports the answers of the proofs ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Passes.h"
#include "lib/Analysis/Proofs.h"
#include "lib/Analysis/RowInterpreter.h"
#include "lib/Analysis/RowModel.h"

#include "mlafix/UnitLimits.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/DebugLog.h"
#include "llvm/Support/raw_ostream.h"

#define DEBUG_TYPE "mlafix-prove"

namespace mlafix {
#define GEN_PASS_DEF_PROVEPASS
#include "lib/Analysis/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

static void emitAnswer(KernelOp kernel, const Answer &answer) {
  Location loc = answer.op ? answer.op->getLoc() : kernel.getLoc();
  InFlightDiagnostic diag = mlir::emitRemark(loc);
  diag << kernel.getArgName(answer.argument) << ": "
       << spelling(answer.question) << ": " << spelling(answer.verdict);
  if (!answer.reason.empty())
    diag << ": " << answer.reason;
  if (!answer.element.empty())
    diag << ": " << answer.element;
  if (answer.other && answer.other != answer.op)
    diag.attachNote(answer.other->getLoc()) << "the other row's access";
}

static void refuseCoverage(KernelOp kernel, const Answer &answer,
                           Location loc) {
  StringRef name = kernel.getArgName(answer.argument);
  InFlightDiagnostic diag = mlir::emitError(loc)
                            << "expected every element of '" << name
                            << "' to be written, got ";
  if (answer.verdict == Verdict::Refuted)
    diag << "no store to " << answer.element << ": for example "
         << answer.reason << "; store there, too, ";
  else if (answer.reason == kTooManyCases)
    diag << "stores that the compiler cannot follow: " << answer.reason
         << "; compute the value in the branches and store it once behind "
            "them, ";
  else
    diag << "stores that may leave one out: " << answer.reason
         << "; store in every case, ";
  diag << "or say what '" << name << "' holds elsewhere: ";
  if (isa<ForallOp>(kernel.getGrid())) // the remedy, a fill, needs a dense grid
    diag << (isInMlir(loc) ? "mlafix.fill" : ".fill(0)")
         << " gives it a value, ";
  diag << (isInMlir(loc) ? "mlafix.access = \"update\"" : "InOut[…]")
       << " keeps what it held";
}

static void refuseBounds(KernelOp kernel, const Answer &answer, Location loc) {
  InFlightDiagnostic diag = mlir::emitError(loc)
                            << "expected every access of '"
                            << kernel.getArgName(answer.argument)
                            << "' to be in bounds (bounds = \"prove\"), got ";
  if (answer.verdict == Verdict::Refuted)
    diag << answer.element << ": for example " << answer.reason;
  else
    diag << "one that may be outside: " << answer.reason;
}

static void refuseReads(KernelOp kernel, const Answer &answer, Location loc) {
  StringRef name = kernel.getArgName(answer.argument);
  mlir::emitError(loc) << "expected a row to write an element of output '"
                       << name << "' before it reads it, got a read of "
                       << answer.element << " first: for example "
                       << answer.reason << "; "
                       << (isInMlir(loc) ? "mlafix.access = \"update\""
                                         : "InOut[…]")
                       << " declares that '" << name
                       << "' has contents to read";
}

static void refuseRaces(KernelOp kernel, const Answer &answer, Location loc) {
  StringRef name = kernel.getArgName(answer.argument);
  InFlightDiagnostic diag = mlir::emitError(loc);
  if (answer.question == Question::OneWriter)
    diag << "expected one row to write each element of '" << name
         << "', got two that write " << answer.element << ": for example "
         << answer.reason;
  else
    diag << "expected the rows of '" << name
         << "' to be independent, got a read of " << answer.element
         << ", which another row writes: for example " << answer.reason
         << "; read from a tensor that the kernel does not write";
  if (answer.other && answer.other != answer.op)
    diag.attachNote(answer.other->getLoc()) << "the other row's access";
}

bool mlafix::refuse(KernelOp kernel, const Answer &answer) {
  bool isRefuted = answer.verdict == Verdict::Refuted;
  if (!isRefuted && answer.verdict != Verdict::Unknown)
    return false;
  Location loc = answer.op ? answer.op->getLoc() : kernel.getLoc();
  switch (answer.question) {
  case Question::Coverage:
    refuseCoverage(kernel, answer, loc);
    return true;
  case Question::Bounds:
    if (kernel.provesBounds())
      refuseBounds(kernel, answer, loc);
    return kernel.provesBounds();
  case Question::WrittenFirst:
    if (isRefuted)
      refuseReads(kernel, answer, loc);
    return isRefuted;
  case Question::OneWriter:
  case Question::Independence:
    if (!isRefuted || kernel.allows("races"))
      return false;
    refuseRaces(kernel, answer, loc);
    return true;
  }
  llvm_unreachable("unknown question");
}

/// Returns the source text that suppresses warnings of `kind`.
static std::string spellAllowed(StringRef kind, bool isMlir) {
  return (isMlir ? "allow = [\"" + kind + "\"]" : "allow={\"" + kind + "\"}")
      .str();
}

static std::string describeRaces(KernelOp kernel, const Answer &answer,
                                 bool isMlir) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  StringRef name = kernel.getArgName(answer.argument);
  if (answer.question == Question::OneWriter)
    stream << "expected one row to write each element of '" << name
           << "', got rows that may write the same one: ";
  else
    stream << "expected the rows of '" << name
           << "' to be independent, got a read of what another row may write: ";
  stream << answer.reason << "; ";
  if (answer.table.empty())
    stream << (isMlir ? "mlafix.assume" : "assume(…)")
           << " promises a condition that keeps rows apart";
  else
    stream << (isMlir ? "mlafix.distinct %" + answer.table
                      : "distinct(" + answer.table + ")")
           << " before the grid promises that its entries differ, if they do";
  stream << ", " << spellAllowed("races", isMlir)
         << " of the kernel declares that rows do not meet, or may";
  return text;
}

static std::string describeOutside(KernelOp kernel, const Answer &answer,
                                   bool isMlir) {
  std::string text;
  llvm::raw_string_ostream(text)
      << "expected every access of '" << kernel.getArgName(answer.argument)
      << "' to be in bounds, got " << answer.element << ": for example "
      << answer.reason
      << "; out of bounds a load gives zero and a store does nothing; "
      << (isMlir ? "mlafix.assume" : "assume(…)")
      << " before the grid makes launches check the sizes, "
      << spellAllowed("bounds", isMlir)
      << " of the kernel declares that it is meant";
  return text;
}

std::vector<ProofWarning> mlafix::findWarnings(KernelOp kernel,
                                               ArrayRef<Answer> answers) {
  std::vector<ProofWarning> warnings;
  auto warn = [&](StringRef kind, auto describe, auto isDoubt) {
    const Answer *answer = llvm::find_if(answers, isDoubt);
    if (answer == answers.end() || kernel.allows(kind))
      return;
    Operation *op = answer->op ? answer->op : kernel.getOperation();
    warnings.push_back({op, describe(kernel, *answer, isInMlir(op->getLoc()))});
  };
  warn("races", describeRaces, [](const Answer &answer) {
    return answer.verdict == Verdict::Unknown &&
           (answer.question == Question::OneWriter ||
            answer.question == Question::Independence);
  });
  warn("bounds", describeOutside, [](const Answer &answer) {
    return answer.verdict == Verdict::Refuted &&
           answer.question == Question::Bounds;
  });
  return warnings;
}

/// Truncates `text` to the limit of the manifest, at a character boundary.
static StringRef cutText(StringRef text) {
  if (text.size() <= limits::nameBytes)
    return text;
  size_t end = limits::nameBytes;
  while (end && (text[end] & 0xc0) == 0x80) // inside a UTF-8 character
    --end;
  return text.take_front(end);
}

/// Sets `kProofsAttr`. Truncates reasons to the length limit of the manifest.
static void recordAnswers(KernelOp kernel, ArrayRef<Answer> answers) {
  Builder b(kernel.getContext());
  SmallVector<Attribute> all;
  for (const Answer &answer : answers) {
    SmallVector<NamedAttribute> fields = {
        b.getNamedAttr("arg", b.getI64IntegerAttr(answer.argument)),
        b.getNamedAttr("question", b.getStringAttr(spelling(answer.question))),
        b.getNamedAttr("verdict", b.getStringAttr(spelling(answer.verdict)))};
    auto addText = [&](StringRef name, StringRef text) {
      if (!text.empty())
        fields.push_back(b.getNamedAttr(name, b.getStringAttr(cutText(text))));
    };
    addText("reason", answer.reason);
    addText("element", answer.element);
    all.push_back(b.getDictionaryAttr(fields));
  }
  kernel->setAttr(kProofsAttr, b.getArrayAttr(all));
}

namespace {
class ProvePass : public mlafix::impl::ProvePassBase<ProvePass> {
public:
  using ProvePassBase::ProvePassBase;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    ArrayRef<Answer> answers = getAnalysis<KernelProofs>().getAnswers();
    markAllAnalysesPreserved();
    if (records)
      recordAnswers(kernel, answers);
    for (const Answer &answer : answers)
      LDBG() << kernel.getArgName(answer.argument) << ": "
             << spelling(answer.question) << " is " << spelling(answer.verdict);
    if (refuses) {
      judge(kernel, answers);
      return;
    }
    for (const Answer &answer : answers)
      emitAnswer(kernel, answer);
    if (exhaustive < 1)
      return;
    for (const Violation &violation : runSmallLaunches(kernel, exhaustive))
      if (!isExpected(kernel, violation, answers))
        signalPassFailure();
  }

private:
  /// Reports errors or, if there are none, warnings about the answers.
  void judge(KernelOp kernel, ArrayRef<Answer> answers) {
    bool isRefused = false;
    for (const Answer &answer : answers)
      isRefused |= refuse(kernel, answer);
    if (isRefused)
      return signalPassFailure();
    for (const ProofWarning &warning : findWarnings(kernel, answers))
      mlir::emitWarning(warning.op->getLoc()) << warning.message;
  }

  /// Reports a violation that a run found. If the answers exclude the
  /// violation, reports an error and returns false. Otherwise reports a remark
  /// and returns true.
  static bool isExpected(KernelOp kernel, const Violation &violation,
                         ArrayRef<Answer> answers) {
    Location loc = violation.op ? violation.op->getLoc() : kernel.getLoc();
    auto isProved = [&](const Answer &answer) {
      return answer.question == violation.question &&
             answer.argument == violation.argument &&
             answer.verdict == Verdict::Proved;
    };
    bool contradicts = llvm::any_of(answers, isProved);
    InFlightDiagnostic diag =
        contradicts ? mlir::emitError(loc) : mlir::emitRemark(loc);
    diag << kernel.getArgName(violation.argument) << ": "
         << spelling(violation.question) << ": fails for [";
    llvm::interleaveComma(violation.element, diag);
    diag << "] in row [";
    llvm::interleaveComma(violation.row, diag);
    diag << "]";
    return !contradicts;
  }
};
} // namespace
