//===- IntegerPoints.h - decides if integer points exist --------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_INTEGERPOINTS_H
#define MLAFIX_ANALYSIS_INTEGERPOINTS_H

#include "lib/Analysis/Elimination.h"

#include "mlir/Analysis/Presburger/IntegerRelation.h"

#include <optional>

namespace mlafix {

/// The remaining budget of a question, in units of about 0.1 microseconds. It
/// counts operations rather than time, so that answers do not depend on the
/// machine.
class Work {
public:
  explicit Work(int64_t units) : left(units) {}
  /// Subtracts `units` from the budget. Returns false if it is exhausted.
  bool spend(int64_t units) {
    left = std::max<int64_t>(left - units, -1);
    return left >= 0;
  }
  int64_t getLeft() const { return std::max<int64_t>(left, 0); }

private:
  int64_t left;
};

/// Returns the polyhedron with the constraints `rows`. The first `numDims`
/// columns are its dims, the next its locals.
mlir::presburger::IntegerPolyhedron
getPolyhedron(llvm::ArrayRef<SparseRow> rows, unsigned numDims,
              unsigned numColumns);

/// True if `rows` have an integer solution. Returns nullopt if the budget runs
/// out or a number overflows 64 bits.
std::optional<bool> hasPoint(llvm::ArrayRef<SparseRow> rows, Work &work);

/// Finds an integer solution of `rows`, and returns the values of the columns
/// below `count`. Chooses them in the order of the columns: for each, the least
/// possible value >= 0 or, if there is none, the greatest negative one. Returns
/// nullopt if there is no solution or the budget runs out.
std::optional<llvm::SmallVector<int64_t>>
findSmallPoint(std::vector<SparseRow> rows, unsigned count, Work &work);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_INTEGERPOINTS_H
