//===- Elimination.h - columns that are easily got rid of -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Most of the prover's constraint sets are decided by solving equations and by
// eliminating columns with no bound, or one bound, on a side. The rest is
// small.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_ELIMINATION_H
#define MLAFIX_ANALYSIS_ELIMINATION_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <vector>

namespace mlafix {

/// A linear constraint: sum of coefficient * column + constant >= 0, or == 0.
struct SparseRow {
  /// (column, coefficient) pairs. Columns may repeat.
  llvm::SmallVector<std::pair<unsigned, int64_t>, 6> terms;
  int64_t constant = 0;
  bool isEquality = false;

  /// The first coefficient of `column`; 0 if it does not occur.
  int64_t getCoefficient(unsigned column) const;
};

/// Replaces a set of integer points by one with fewer columns that is empty if
/// and only if the original is.
class Elimination {
public:
  explicit Elimination(llvm::ArrayRef<SparseRow> rows);

  /// True if the set is known to be empty.
  bool isEmpty() const { return isContradiction; }
  /// The remaining rows; empty if the set is known to have a point.
  llvm::ArrayRef<SparseRow> getRows() const { return rows; }
  /// The cost so far, in comparisons and additions of rows.
  int64_t getSteps() const { return steps; }

private:
  void add(SparseRow row);
  void replace(unsigned column, std::vector<SparseRow> others);
  bool solveEquality();
  bool dropColumn();
  /// Returns false on overflow.
  bool combineBounds(unsigned column);

  std::vector<SparseRow> rows;
  bool isContradiction = false;
  int64_t steps = 0;
};

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_ELIMINATION_H
