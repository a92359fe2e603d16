//===- LinearSystem.h - constraints on one or two rows ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A set of integer points for MLIR's Presburger library, built from the
// conditions of a RowModel. Most columns stand for a variable of the model in
// one of two rows ("instances" 0 and 1). A variable that is fixed per launch
// has one column for both instances. Other columns stand for no variable, such
// as the index of an element.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_LINEARSYSTEM_H
#define MLAFIX_ANALYSIS_LINEARSYSTEM_H

#include "lib/Analysis/IntegerPoints.h"
#include "lib/Analysis/RowModel.h"

#include "mlir/Analysis/Presburger/PresburgerRelation.h"

namespace mlafix {

/// Limits that bound the time of a question. Larger systems stay undecided.
struct Budget {
  static constexpr unsigned columns = 40;
  static constexpr unsigned disjuncts = 32;
  // The most disjuncts for which a search for empty ones pays.
  static constexpr unsigned candidates = 128;
  static constexpr unsigned rows = 96; // per disjunct
  // The most existential columns of a disjunct that no equality determines. If
  // there is more than one, `factor` limits the magnitude of their
  // coefficients, because solving time grows with that magnitude.
  static constexpr unsigned locals = 2;
  static constexpr int64_t factor = 64;
  static constexpr unsigned pieces = 32; // disjuncts of a set difference
  // The most columns of a set in which MLIR's Presburger library looks for a
  // point. The library's time is exponential in the number of columns.
  static constexpr unsigned sampled = 13;
  // The most examples that are executed per kernel, and the most ops that all
  // of these execute together.
  static constexpr unsigned examples = 32;
  static constexpr int64_t steps = 1 << 17;
  // Units of Work per question, per kernel, and per question once the kernel's
  // budget is used up.
  static constexpr int64_t question = 8'000'000, kernel = 24'000'000,
                           last = 400'000;
};

class LinearSystem {
public:
  /// A point of the set: a value for each column.
  using Point = llvm::SmallVector<int64_t>;

  /// Solving subtracts its cost from `work`.
  LinearSystem(const RowModel &model, Work &work)
      : model(&model), work(&work), disjuncts(1) {}

  /// Adds a column that stands for no variable.
  Form addColumn();
  /// Returns the column of `var` in row `instance`. If `var` has none yet, adds
  /// it with the variable's range and definition as constraints.
  unsigned getColumn(Var var, unsigned instance = 0);
  /// Returns the column of `var` in row `instance`, or nullopt if it has none.
  std::optional<unsigned> findColumn(Var var, unsigned instance = 0) const;
  Form getForm(const Linear &linear, unsigned instance = 0);

  /// Restricts the set to `form` >= 0, or to `form` == 0 if `isEquality`.
  void restrict(const Form &form, bool isEquality = false);
  void restrict(const Condition &condition, unsigned instance = 0);

  unsigned getNumColumns() const { return numColumns; }
  bool isOverBudget() const;
  /// Splits the set into one disjunct per value of each remainder, so that each
  /// quotient is a linear function of its dividend. Returns false and changes
  /// nothing if there are no remainders or too many cases.
  bool splitRemainders();
  /// Drops all constraints but keeps the columns.
  void clear() { disjuncts.assign(1, {}); }

  /// True if the set has no point. Returns nullopt if the budget runs out.
  std::optional<bool> isEmpty() const;
  /// Returns a point with small sizes and scalars, found by a heuristic search.
  /// Returns nullopt if the search finds none.
  std::optional<Point> findPoint() const;
  mlir::presburger::PresburgerSet getSet() const;
  /// Projects the set onto its first `numDims` columns. The existential columns
  /// of the result are all quotients. Returns nullopt if the budget runs out.
  std::optional<mlir::presburger::PresburgerSet>
  project(unsigned numDims) const;
  /// Returns a small point of `set`, whose dims are this system's first
  /// columns. Returns nullopt if the search finds none.
  std::optional<Point>
  findPoint(const mlir::presburger::PresburgerSet &set) const;

private:
  using Disjunct = std::vector<SparseRow>;
  static bool contradict(const Disjunct &a, const Disjunct &b);
  /// Finds a remainder in `disjunct` that no equality determines. Returns the
  /// remainder as a form, and its largest value. Its least value is 0.
  static std::optional<std::pair<Form, int64_t>>
  findRemainder(const Disjunct &disjunct);
  void dropEmpty(std::vector<Disjunct> &cases) const;

  const RowModel *model;
  Work *work;
  unsigned numColumns = 0;
  llvm::DenseMap<std::pair<Var, unsigned>, unsigned> columns;
  std::vector<bool> named;
  std::vector<Disjunct> disjuncts;
  bool isTooLarge = false;
};

/// Returns the constraints of `set`. The first columns are the dims of `set`,
/// the next its locals. Returns nullopt if a number overflows 64 bits.
std::optional<std::vector<SparseRow>>
getSparseRows(const mlir::presburger::IntegerRelation &set);
/// Returns `set` minus `other`. If the difference has more than
/// `Budget::pieces` disjuncts, returns only some of them, none of which is
/// empty. Does not subtract disjuncts of `other` with locals that are not
/// quotients. Returns nullopt if the budget runs out.
std::optional<mlir::presburger::PresburgerSet>
subtract(const mlir::presburger::PresburgerSet &set,
         const mlir::presburger::PresburgerSet &other, Work &work);
/// True if the set has no point. Returns nullopt if the budget runs out.
std::optional<bool> isEmpty(const mlir::presburger::PresburgerSet &set,
                            Work &work);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_LINEARSYSTEM_H
