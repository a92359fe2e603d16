//===- SmallLaunch.h - a launch that is run on paper ------------*- C++ -*-===//
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

/// The arguments of a launch. Tensor contents come from an oracle, or in a
/// replay from `elements`.
struct SmallLaunch {
  /// Dim sizes of each tensor argument.
  llvm::DenseMap<unsigned, llvm::SmallVector<int64_t>> sizes;
  /// Group sizes of products that are not bound, by argument.
  llvm::DenseMap<unsigned, int64_t> groupSizes;
  /// Values of integer and boolean arguments.
  llvm::DenseMap<unsigned, int64_t> scalars;
  /// Omitted optional arguments.
  llvm::SmallVector<unsigned> absent;

  /// Replay only: contents of the tensors that the kernel reads element by
  /// element, in row-major order. Floats, also scalar ones, are stored as the
  /// bits of an f32.
  llvm::DenseMap<unsigned, std::vector<int64_t>> elements;
  /// Replay against a reference only: the expected contents of outputs, stored
  /// like `elements`, and their largest error as a share of the largest
  /// magnitude.
  llvm::DenseMap<unsigned, std::vector<int64_t>> expected;
  double tolerance = 0;
};

/// A violation of one of the proved properties.
struct Violation {
  Question question;
  unsigned argument;
  mlir::Operation *op; ///< the access; null for an element that nothing writes
  llvm::SmallVector<int64_t> row;
  llvm::SmallVector<int64_t> element;
};

/// A promise that a launch breaks.
struct BrokenPromise {
  mlir::Operation *op; ///< an AssumeOp or a DistinctOp
  /// The first row that violates an assumption in the grid.
  llvm::SmallVector<int64_t> row;
  /// The first entry of a distinct table that equals an earlier one.
  llvm::SmallVector<int64_t> element;
};

/// A store of an odd value: a NaN or an infinity that the kernel made, or a
/// value that differs from the reference.
struct OddValue {
  mlir::Operation *store;
  unsigned argument;
  llvm::StringRef question; ///< "NaN", "infinity" or "reference"
  llvm::SmallVector<int64_t> row;
  llvm::SmallVector<int64_t> element;
  std::string text;      ///< operands of `from`; else the values of both sides
  mlir::Operation *from; ///< the op that made it; null for "reference"
};

/// The text that a row printed.
struct PrintedText {
  PrintOp op;
  llvm::SmallVector<int64_t> row;
  std::string text;
};

/// The findings of a replay.
struct Replay {
  /// Coverage is not judged if `unknownRows` is not 0 or `isWhole` is false.
  std::vector<Violation> violations;
  /// The number of rows abandoned at a condition or index that depends on
  /// unknown elements of rows.
  int64_t unknownRows = 0;
  /// True if all rows were executed; a run stops after one million ops.
  bool isWhole = true;
  /// The first violation of each promise.
  std::vector<BrokenPromise> broken;
  /// The first odd value of each question in each argument.
  std::vector<OddValue> odd;
  /// Printed texts in row order, and the number of texts dropped.
  std::vector<PrintedText> printed;
  int64_t textsDropped = 0;
};

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_SMALLLAUNCH_H
