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
  /// No two rows write one element.
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
  /// Proved, if what `Answer::reason` says of a launch's data is so.
  Promised,
  /// Neither proved nor refuted: `Answer::reason` says what it depends on.
  Unknown,
  /// `Answer::reason` is an example, which fails when its rows are run.
  Refuted,
};

llvm::StringRef spelling(Question question);
llvm::StringRef spelling(Verdict verdict);

/// The answer to one question about one argument: the worst of the answers for
/// its accesses.
struct Answer {
  Answer(Question question, unsigned argument,
         Verdict verdict = Verdict::Proved)
      : question(question), argument(argument), verdict(verdict) {}

  Question question;
  unsigned argument;
  Verdict verdict;
  /// The access that is not proved; null: none, or none that could be named.
  mlir::Operation *op = nullptr;
  /// For a pair of accesses, the other one.
  mlir::Operation *other = nullptr;
  std::string reason;
  /// Of a refutation: the element that it is about, "out[0, 1]".
  std::string element;
  /// Of rows that may meet: the table that keeps them apart if its entries are
  /// distinct; empty: none is known.
  std::string table;
  double microseconds = 0;
};

/// An index of an access that needs a bounds guard: it is not proved to be at
/// least 0 and below the size of its dim, nor promised in a kernel with bounds
/// = "prove".
struct OpenIndex {
  MemoryAccess access;
  unsigned dim;
};

/// The proofs about a kernel in the language's own ops, before states are
/// lowered; its names may be bound or not. An analysis: passes that change
/// nothing share it.
class KernelProofs {
public:
  /// Asks every question of every argument that it applies to. `op` is a
  /// KernelOp; of one whose grid is lowered nothing is asked.
  explicit KernelProofs(mlir::Operation *op);

  /// In the order of the arguments.
  llvm::ArrayRef<Answer> getAnswers() const { return answers; }
  llvm::ArrayRef<OpenIndex> getOpenIndices() const { return openIndices; }

private:
  std::vector<Answer> answers;
  std::vector<OpenIndex> openIndices;
};

/// Reports as an error, which says what to do about it, that coverage, or in a
/// kernel with bounds = "prove" bounds, is neither proved nor promised, or that
/// written before read or, unless the kernel allows races, one writer or
/// independence is refuted. True if `answer` is one of these.
bool refuse(KernelOp kernel, const Answer &answer);

/// A possible fault of a kernel that its author may not know of.
struct ProofWarning {
  mlir::Operation *op; ///< the access, or the kernel
  std::string message;
};

/// That rows may meet, where one writer or independence is unknown, and that
/// accesses are out of bounds for some sizes: one warning of each, of the first
/// such answer, unless the kernel allows it.
std::vector<ProofWarning> findWarnings(KernelOp kernel,
                                       llvm::ArrayRef<Answer> answers);

/// The promise of an AssumeOp or a DistinctOp, in words.
std::string describePromise(mlir::Operation *promise);

/// On a kernel that `mlafix-prove` has recorded the answers of: an array of
/// {arg, question, verdict} and, of what is not proved, {reason, element}, as a
/// unit's manifest holds them (docs/UnitFormat.md).
inline constexpr llvm::StringLiteral kProofsAttr = "mlafix.proofs";

/// Sets `kProofsAttr`. Reasons are cut to what a manifest may hold.
void recordAnswers(KernelOp kernel, llvm::ArrayRef<Answer> answers);

/// Reports an answer that is not Proved as `severity`, at the access.
void emitAnswer(KernelOp kernel, const Answer &answer,
                mlir::DiagnosticSeverity severity);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_PROOFS_H
