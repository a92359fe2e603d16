//===- Proofs.h - what is shown of a kernel ---------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// docs/Proofs.md says what each question means and what the answers rest on.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_PROOFS_H
#define MLAFIX_ANALYSIS_PROOFS_H

#include "dialect/Mlafix.h"

#include <string>
#include <utility>
#include <vector>

namespace mlafix {

enum class Question {
  /// Every element of an output is written.
  Coverage,
  /// No two rows write the same element.
  OneWriter,
  /// No row reads an element that another row writes.
  Independence,
  /// No row reads an element of an output that it has not written.
  WrittenFirst,
  /// Every access lies inside its tensor.
  Bounds,
};

enum class Verdict {
  Proved,
  /// Proved under the assumption about a launch's data that `Answer::reason`
  /// states.
  Promised,
  /// Neither proved nor refuted; `Answer::reason` names what is missing.
  Unknown,
  /// Refuted by the example in `Answer::reason`, which was executed.
  Refuted,
};

/// The reason of an answer that ran out of its budget.
inline constexpr llvm::StringLiteral kTooManyCases =
    "too many cases to look at";

llvm::StringRef spelling(Question question);
llvm::StringRef spelling(Verdict verdict);

/// The answer to one question about one argument: the worst answer over its
/// accesses.
struct Answer {
  Answer(Question question, unsigned argument,
         Verdict verdict = Verdict::Proved)
      : question(question), argument(argument), verdict(verdict) {}

  Question question;
  unsigned argument;
  Verdict verdict;
  /// The access that is not proved; null if no single one is to blame.
  mlir::Operation *op = nullptr;
  /// The second access, if the question is about a pair.
  mlir::Operation *other = nullptr;
  std::string reason;
  /// If refuted: the element concerned, "out[0, 1]".
  std::string element;
  /// If two rows may access the same element: the table whose entries must be
  /// distinct to prevent that. Empty if unknown.
  std::string table;
  double microseconds = 0;
};

/// An index that needs a bounds guard: it is neither proved to be in bounds nor
/// promised (bounds = "prove").
struct OpenIndex {
  MemoryAccess access;
  unsigned dim;
};

/// The proofs about a kernel before states are lowered; its names may be bound
/// or not. This is an MLIR analysis, so passes that change nothing share it.
class KernelProofs {
public:
  /// Answers every applicable question for every argument. `op` is a KernelOp;
  /// no question applies once its grid is lowered.
  explicit KernelProofs(mlir::Operation *op);

  /// In the order of the arguments.
  llvm::ArrayRef<Answer> getAnswers() const { return answers; }
  llvm::ArrayRef<OpenIndex> getOpenIndices() const { return openIndices; }

private:
  std::vector<Answer> answers;
  std::vector<OpenIndex> openIndices;
};

/// Reports an error, with its remedy, if `answer` stops compilation, and
/// returns true then. These are: coverage (and bounds, with bounds = "prove")
/// neither proved nor promised; written-before-read refuted; one writer or
/// independence refuted, unless the kernel allows races.
bool refuse(KernelOp kernel, const Answer &answer);

/// A possible fault of a kernel that its author may not know of.
struct ProofWarning {
  mlir::Operation *op; ///< the access, or the kernel
  std::string message;
};

/// Returns at most two warnings, unless the kernel allows them: the first
/// answer that lets two rows access the same element (one writer or
/// independence unknown), and the first access that is out of bounds for some
/// sizes.
std::vector<ProofWarning> findWarnings(KernelOp kernel,
                                       llvm::ArrayRef<Answer> answers);

/// The promise of an AssumeOp or a DistinctOp, in words.
std::string describePromise(mlir::Operation *promise);

/// Attribute with the answers that `mlafix-prove` recorded: an array of {arg,
/// question, verdict}, with {reason, element} if not proved, as in a unit's
/// manifest (docs/UnitFormat.md).
inline constexpr llvm::StringLiteral kProofsAttr = "mlafix.proofs";

/// Sets `kProofsAttr`. Truncates reasons to the manifest's limit.
void recordAnswers(KernelOp kernel, llvm::ArrayRef<Answer> answers);

/// Reports an answer other than Proved at its access, with `severity`.
void emitAnswer(KernelOp kernel, const Answer &answer,
                mlir::DiagnosticSeverity severity);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_PROOFS_H
