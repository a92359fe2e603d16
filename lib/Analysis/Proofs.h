//===- Proofs.h - answers about the properties of a kernel ------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// docs/Proofs.md defines the questions and states what the answers assume.
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
  /// A row that reads an output reads only elements that it has written itself.
  WrittenFirst,
  /// Every access lies inside its tensor.
  Bounds,
};

enum class Verdict {
  Proved,
  /// Proved if the launch's data satisfies the promise in `Answer::reason`.
  Promised,
  /// Neither proved nor refuted. `Answer::reason` says what is missing.
  Unknown,
  /// Refuted by the example in `Answer::reason`, which was executed.
  Refuted,
};

/// The reason in an answer whose question exceeded its budget.
inline constexpr llvm::StringLiteral kTooManyCases =
    "too many cases to look at";

llvm::StringRef spelling(Question question);
llvm::StringRef spelling(Verdict verdict);

/// The answer to one question about one argument. It is the worst answer over
/// all accesses of the argument.
struct Answer {
  Answer(Question question, unsigned argument,
         Verdict verdict = Verdict::Proved)
      : question(question), argument(argument), verdict(verdict) {}

  Question question;
  unsigned argument;
  Verdict verdict;
  /// The access that is not proved. Null if no single access is to blame.
  mlir::Operation *op = nullptr;
  /// The second access if the question is about a pair of accesses; else null.
  mlir::Operation *other = nullptr;
  std::string reason;
  /// The refuted element, "out[0, 1]". Empty unless the answer is Refuted.
  std::string element;
  /// If two rows may access the same element: the name of a table whose
  /// distinct entries would prevent it. Empty if there is no such table.
  std::string table;
  double microseconds = 0;
};

/// An index that needs a bounds guard, because it is not proved to be in
/// bounds. In a kernel with bounds = "prove", a promise counts as a proof.
struct OpenIndex {
  MemoryAccess access;
  unsigned dim;
};

/// The proofs about a kernel whose states are not lowered yet. Names of sizes
/// may be bound or not. MLIR caches this analysis until a pass changes the
/// kernel.
class KernelProofs {
public:
  /// Answers every applicable question for every argument. `op` must be a
  /// KernelOp. If its grid is lowered already, no question applies.
  explicit KernelProofs(mlir::Operation *op);

  /// Returns the answers in the order of the arguments.
  llvm::ArrayRef<Answer> getAnswers() const { return answers; }
  llvm::ArrayRef<OpenIndex> getOpenIndices() const { return openIndices; }

private:
  std::vector<Answer> answers;
  std::vector<OpenIndex> openIndices;
};

/// Reports an error with a remedy, and returns true, if `answer` must stop
/// compilation. Coverage must be proved or promised; with bounds = "prove", so
/// must bounds. Written-before-read must not be refuted. One writer and
/// independence must not be refuted unless the kernel allows races.
bool refuse(KernelOp kernel, const Answer &answer);

/// A possible fault of a kernel, to report to the kernel's author.
struct ProofWarning {
  mlir::Operation *op; ///< the access; the kernel if none is to blame
  std::string message;
};

/// Returns at most two warnings, and none that the kernel allows. One is for
/// the first question of one writer or independence whose answer is unknown,
/// because two rows may then access the same element. The other is for the
/// first access that is out of bounds for some sizes.
std::vector<ProofWarning> findWarnings(KernelOp kernel,
                                       llvm::ArrayRef<Answer> answers);

/// Describes the promise of an AssumeOp or a DistinctOp in words.
std::string describePromise(mlir::Operation *promise);

/// The attribute that holds the answers recorded by `mlafix-prove`. It is an
/// array of {arg, question, verdict}; unproved answers also have {reason,
/// element}. A unit's manifest uses the same format (docs/UnitFormat.md).
inline constexpr llvm::StringLiteral kProofsAttr = "mlafix.proofs";

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_PROOFS_H
