//===- IntegerPoints.h - is there an integer point? -------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_INTEGERPOINTS_H
#define MLAFIX_ANALYSIS_INTEGERPOINTS_H

#include "lib/Analysis/Elimination.h"

#include <optional>

namespace mlafix {

/// How much a question may still compute, in units of about 0.1 microseconds.
/// It counts operations and has no clock, so that answers do not depend on the
/// machine.
class Work {
public:
  explicit Work(int64_t units) : left(units) {}
  /// False if nothing is left.
  bool spend(int64_t units) {
    left = std::max<int64_t>(left - units, -1);
    return left >= 0;
  }
  int64_t getLeft() const { return std::max<int64_t>(left, 0); }

private:
  int64_t left;
};

/// True if there is an integer point. Returns nullopt if the work runs out, or
/// if numbers do not fit 64 bits.
std::optional<bool> hasPoint(llvm::ArrayRef<SparseRow> rows, Work &work);

/// The values of the columns below `count` at a point whose first values are as
/// small as they can be, one after the other. Returns nullopt if there is none,
/// or if the work runs out.
std::optional<llvm::SmallVector<int64_t>>
findSmallPoint(std::vector<SparseRow> rows, unsigned count, Work &work);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_INTEGERPOINTS_H
