//===- IntegerPoints.h - decides if integer points exist --------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_INTEGERPOINTS_H
#define MLAFIX_ANALYSIS_INTEGERPOINTS_H

#include "mlir/Analysis/Presburger/IntegerRelation.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <vector>

namespace mlafix {

/// A linear form: sum(coefficient * column) + constant.
struct Form {
  /// (column, coefficient) pairs. Columns may repeat.
  llvm::SmallVector<std::pair<unsigned, int64_t>, 6> terms;
  int64_t constant = 0;

  /// Adds factor * other, without a check for overflow.
  Form &add(const Form &other, int64_t factor = 1);
  /// Returns the first coefficient of `column`, or 0 if there is none.
  int64_t getCoefficient(unsigned column) const;
};

inline Form operator+(Form form, int64_t number) {
  form.constant += number;
  return form;
}
inline Form operator-(Form form, int64_t number) { return form + -number; }
inline Form operator+(Form a, const Form &b) { return a.add(b); }
inline Form operator-(Form a, const Form &b) { return a.add(b, -1); }
inline Form operator*(int64_t factor, const Form &form) {
  return Form().add(form, factor);
}
inline Form operator-(const Form &form) { return -1 * form; }

/// A linear constraint: the form is >= 0, or == 0.
struct SparseRow : Form {
  bool isEquality = false;
};

/// Returns x * a + y * b, which is an equality if `x` and `y` are. Its columns
/// may repeat. Returns nullopt on overflow.
std::optional<SparseRow> combineRows(const SparseRow &x, int64_t a,
                                     const SparseRow &y, int64_t b);

/// Replaces a set of integer points by one with fewer columns. The new set is
/// empty if and only if the original set is. Decides at low cost, for most of
/// the prover's constraint sets, if they are empty: solves equalities, and
/// eliminates columns as long as this adds no constraints. A set that is then
/// still undecided is small.
class Elimination {
public:
  explicit Elimination(llvm::ArrayRef<SparseRow> rows);

  /// True if the set is known to be empty.
  bool isEmpty() const { return isContradiction; }
  /// Returns the remaining rows. The list is empty if the set is known to have
  /// a point.
  llvm::ArrayRef<SparseRow> getRows() const { return rows; }
  /// Returns the cost so far: the number of comparisons and additions of rows.
  int64_t getSteps() const { return steps; }

private:
  void add(SparseRow row);
  void replace(unsigned column, std::vector<SparseRow> others);
  bool solveEquality();
  bool dropColumn();
  /// Combines the lower and upper bounds of `column`. Returns false on
  /// overflow.
  bool combineBounds(unsigned column);

  std::vector<SparseRow> rows;
  bool isContradiction = false;
  int64_t steps = 0;
};

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
