//===- LaunchWatch.h - what a watched launch says ---------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_LAUNCHWATCH_H
#define MLAFIX_ANALYSIS_LAUNCHWATCH_H

#include "lib/Analysis/SmallLaunch.h"
#include "lib/Analysis/StateLse.h"

namespace mlafix {

/// Keeps what rows print, and which promises a launch breaks.
class LaunchWatch {
public:
  /// Rows print so many texts at most; the rest is counted.
  static constexpr size_t kMaxTexts = 10000;

  /// A row is at an assumption whose condition is false there.
  void breaks(AssumeOp op, llvm::ArrayRef<int64_t> row) {
    addBroken({op, llvm::SmallVector<int64_t>(row), {}});
  }
  /// Looks for the first entry of the table that is at least 0 and equals one
  /// before it.
  void check(DistinctOp op, const SmallLaunch &launch);
  void print(PrintOp op, llvm::ArrayRef<int64_t> row, GetNumber get);

  /// Moves all of it into the replay.
  void finish(Replay &replay);

private:
  /// Keeps the first one of each promise.
  void addBroken(BrokenPromise broken);

  std::vector<BrokenPromise> broken;
  std::vector<PrintedText> printed;
  int64_t textsDropped = 0;
};

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_LAUNCHWATCH_H
