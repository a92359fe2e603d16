//===- LaunchWatch.h - the findings of a replayed launch --------*- C++ -*-===//
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

/// The findings of a replay while it runs. Adds what the launch prints, the
/// promises that it breaks, and the odd values that it stores: NaNs and
/// infinities that the kernel made, and values that differ from the reference.
class LaunchWatch : public Replay {
public:
  /// The largest number of printed texts that are kept. Further texts are only
  /// counted.
  static constexpr size_t kMaxTexts = 10000;

  /// Records that the condition of assumption `op` is false in `row`.
  void breaks(AssumeOp op, llvm::ArrayRef<int64_t> row) {
    addBroken({op, llvm::SmallVector<int64_t>(row), {}});
  }
  /// Checks that the entries >= 0 of `op`'s table differ, as `op` promises.
  /// Records the first entry that equals an earlier one.
  void check(DistinctOp op, const SmallLaunch &launch);
  void print(PrintOp op, llvm::ArrayRef<int64_t> row, const RowValues &values);
  /// Records an odd value, unless one for the same question and argument is
  /// already recorded.
  void add(OddValue one);

private:
  /// Records a broken promise, unless one of the same op is already recorded.
  void addBroken(BrokenPromise broken);
};

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_LAUNCHWATCH_H
