//===- LaunchWatch.h - what a watched launch says ---------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_LAUNCHWATCH_H
#define MLAFIX_ANALYSIS_LAUNCHWATCH_H

#include "lib/Analysis/RowValues.h"
#include "lib/Analysis/SmallLaunch.h"

namespace mlafix {

/// Collects printed texts, odd values and broken promises of a launch.
class LaunchWatch {
public:
  /// Limit of the printed texts; the rest is only counted.
  static constexpr size_t kMaxTexts = 10000;

  /// Records that a row reached an assumption whose condition is false.
  void breaks(AssumeOp op, llvm::ArrayRef<int64_t> row) {
    addBroken({op, llvm::SmallVector<int64_t>(row), {}});
  }
  /// Records the first table entry >= 0 that equals an earlier one.
  void check(DistinctOp op, const SmallLaunch &launch);
  void print(PrintOp op, llvm::ArrayRef<int64_t> row, const RowValues &values);
  /// Keeps only the first value for each question and argument.
  void add(OddValue one);

  /// Moves everything into the replay.
  void finish(Replay &replay);

private:
  /// Keeps the first violation of each promise.
  void addBroken(BrokenPromise broken);

  std::vector<BrokenPromise> broken;
  std::vector<OddValue> odd;
  std::vector<PrintedText> printed;
  int64_t textsDropped = 0;
};

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_LAUNCHWATCH_H
