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

/// The arguments of a launch. An oracle gives the contents of tensors; a replay
/// has them itself.
struct SmallLaunch {
  /// The sizes of each argument that is a tensor.
  llvm::DenseMap<unsigned, llvm::SmallVector<int64_t>> sizes;
  /// The elements of a group, of those along a product that is not bound.
  llvm::DenseMap<unsigned, int64_t> groupSizes;
  /// Integer and boolean arguments.
  llvm::DenseMap<unsigned, int64_t> scalars;
  /// Optional arguments that are omitted.
  llvm::SmallVector<unsigned> absent;

  /// Of a replay: what the tensors hold whose elements the kernel reads one by
  /// one, with the last dim varying fastest. Floats, scalars too, are the bits
  /// of their f32.
  llvm::DenseMap<unsigned, std::vector<int64_t>> elements;
};

/// Something that a kernel must not do, done.
struct Violation {
  Question question;
  unsigned argument;
  mlir::Operation *op; ///< the access; null: an element that none wrote
  llvm::SmallVector<int64_t> row;
  llvm::SmallVector<int64_t> element;
};

/// A promise that a launch breaks.
struct BrokenPromise {
  mlir::Operation *op; ///< an AssumeOp or a DistinctOp
  /// Of an assumption in the grid, the first row for which it does not hold.
  llvm::SmallVector<int64_t> row;
  /// Of a table, its first entry that equals one before it.
  llvm::SmallVector<int64_t> element;
};

/// The text that a row printed.
struct PrintedText {
  PrintOp op;
  llvm::SmallVector<int64_t> row;
  std::string text;
};

/// The findings of a replay.
struct Replay {
  /// Where `unknownRows` is not 0 or `isWhole` is false, none about coverage.
  std::vector<Violation> violations;
  /// Rows that were left at a condition or an index which depends on the
  /// elements of a row: those are not computed.
  int64_t unknownRows = 0;
  /// True if all rows were run, and not just the first million ops.
  bool isWhole = true;
  /// The first time that each promise is broken.
  std::vector<BrokenPromise> broken;
  /// In the order of the rows; so many more were dropped.
  std::vector<PrintedText> printed;
  int64_t textsDropped = 0;
};

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_SMALLLAUNCH_H
