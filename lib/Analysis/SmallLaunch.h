//===- SmallLaunch.h - a launch to interpret, and its findings --*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_SMALLLAUNCH_H
#define MLAFIX_ANALYSIS_SMALLLAUNCH_H

#include "lib/Analysis/Proofs.h"

#include "llvm/ADT/DenseMap.h"

namespace mlafix {

/// The arguments of a launch. In a replay, `elements` holds the contents of
/// tensors; otherwise an oracle supplies them.
struct SmallLaunch {
  /// The dim sizes of each tensor, by argument.
  llvm::DenseMap<unsigned, llvm::SmallVector<int64_t>> sizes;
  /// The group sizes of products whose factors are not bound, by argument.
  llvm::DenseMap<unsigned, int64_t> groupSizes;
  /// The values of integer and boolean arguments, by argument.
  llvm::DenseMap<unsigned, int64_t> scalars;
  /// The optional arguments that the launch omits.
  llvm::SmallVector<unsigned> absent;

  /// The contents of tensors that the kernel reads element by element, in
  /// row-major order. Floats, and also float scalars, are stored as the bits of
  /// an f32. Only used by replays.
  llvm::DenseMap<unsigned, std::vector<int64_t>> elements;
  /// The expected contents of outputs, stored like `elements`. Only used by
  /// replays against a reference. An output may differ from its expected value
  /// x by at most tolerance * max(1, |x|).
  llvm::DenseMap<unsigned, std::vector<int64_t>> expected;
  double tolerance = 0;
};

/// A violation of one of the properties that the prover proves.
struct Violation {
  Question question;
  unsigned argument;
  mlir::Operation *op; ///< the access; null if nothing writes the element
  llvm::SmallVector<int64_t> row;
  llvm::SmallVector<int64_t> element;
};

/// Records that a launch breaks a promise.
struct BrokenPromise {
  mlir::Operation *op; ///< an AssumeOp or a DistinctOp
  /// The first row that breaks an assumption in the grid. Empty for a
  /// DistinctOp, and for an assumption before the grid.
  llvm::SmallVector<int64_t> row;
  /// The first entry of a distinct table that equals an earlier one. Empty for
  /// an AssumeOp.
  llvm::SmallVector<int64_t> element;
};

/// A store of an odd value. The value is a NaN or an infinity that the kernel
/// made, or it differs from the reference.
struct OddValue {
  mlir::Operation *store;
  unsigned argument;
  llvm::StringRef question; ///< "NaN", "infinity" or "reference"
  llvm::SmallVector<int64_t> row;
  llvm::SmallVector<int64_t> element;
  std::string text;      ///< operands of `from`, or both values for "reference"
  mlir::Operation *from; ///< op that made the value; null for "reference"
};

/// A text that a row printed.
struct PrintedText {
  PrintOp op;
  llvm::SmallVector<int64_t> row;
  std::string text;
};

/// The findings of a replay of a launch.
struct Replay {
  /// The violations found. Coverage is not checked if `unknownRows` is not 0 or
  /// `isWhole` is false.
  std::vector<Violation> violations;
  /// The number of rows that were abandoned at a condition or an index that
  /// depends on unknown elements of rows.
  int64_t unknownRows = 0;
  /// True if all rows were executed. A replay stops after one million ops.
  bool isWhole = true;
  /// The first violation of each promise.
  std::vector<BrokenPromise> broken;
  /// The first odd value per question and argument.
  std::vector<OddValue> odd;
  /// The printed texts in row order, and the number of texts that were dropped.
  std::vector<PrintedText> printed;
  int64_t textsDropped = 0;
};

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_SMALLLAUNCH_H
