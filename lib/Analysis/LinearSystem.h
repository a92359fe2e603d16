//===- LinearSystem.h - constraints of one or two rows ----------------*- C++
//-*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A set of integer points as MLIR's Presburger library takes it, built of a
// RowModel's conditions. A column is a variable of one row (an "instance" of
// the model, 0 or 1; what belongs to the launch is one column for both), or one
// of its own, such as an index of an element.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_LINEARSYSTEM_H
#define MLAFIX_ANALYSIS_LINEARSYSTEM_H

#include "lib/Analysis/IntegerPoints.h"
#include "lib/Analysis/RowModel.h"

#include "mlir/Analysis/Presburger/PresburgerRelation.h"

namespace mlafix {

/// A linear form over columns.
struct Form {
  llvm::SmallVector<std::pair<unsigned, int64_t>, 4> terms;
  int64_t constant = 0;

  Form &add(const Form &other, int64_t factor = 1);
};

/// Limits that keep a question short. Larger systems stay undecided.
struct Budget {
  static constexpr unsigned columns = 40;
  static constexpr unsigned disjuncts = 32;
  // Disjuncts before empty ones are dropped.
  static constexpr unsigned candidates = 128;
  static constexpr unsigned rows = 96; // per disjunct
  // Per disjunct: existential columns that no equality determines, and, if
  // there is more than one, the magnitude of their coefficients (solving time
  // grows with it).
  static constexpr unsigned locals = 2;
  static constexpr int64_t factor = 64;
  static constexpr unsigned pieces = 32; // of a set difference
  // Columns of a set in which MLIR's Presburger library looks for a point; its
  // time is exponential in them.
  static constexpr unsigned sampled = 13;
  // Per kernel: executed examples, and the ops that they execute in total.
  static constexpr unsigned examples = 32;
  static constexpr int64_t steps = 1 << 17;
  // Units of Work: per question, per kernel, and per question after the
  // kernel's budget is used up.
  static constexpr int64_t question = 8'000'000, kernel = 24'000'000,
                           last = 400'000;
};

class LinearSystem {
public:
  /// A point of the set: a value for each column.
  using Point = llvm::SmallVector<int64_t>;

  /// Solving takes its cost off `work`.
  LinearSystem(const RowModel &model, Work &work)
      : model(&model), work(&work), disjuncts(1) {}

  /// Adds a column that belongs to no variable.
  Form addColumn();
  /// The column of a variable. A new column adds the variable's range and
  /// definition to the set.
  unsigned getColumn(Var var, unsigned instance = 0);
  /// The column of a variable, if it has one.
  std::optional<unsigned> findColumn(Var var, unsigned instance = 0) const;
  Form getForm(const Linear &linear, unsigned instance = 0);

  /// Restricts the set to form >= 0, or == 0.
  void restrict(const Form &form, bool isEquality = false);
  void restrict(const Condition &condition, unsigned instance = 0);

  unsigned getNumColumns() const { return numColumns; }
  bool isOverBudget() const;
  /// Splits the set by the values of remainders, so that quotients by different
  /// numbers become linear. Returns false and changes nothing if there are none
  /// or too many.
  bool splitRemainders();
  /// Drops all constraints, keeps the columns.
  void clear() { disjuncts.assign(1, {}); }

  /// True if the set has no point. Returns nullopt if the budget runs out.
  std::optional<bool> isEmpty() const;
  /// A point with small sizes and scalars (a heuristic).
  std::optional<Point> findPoint() const;
  mlir::presburger::PresburgerSet getSet() const;
  /// Projects the set onto its first `numDims` columns; existential columns
  /// become quotients. Returns nullopt if the budget runs out.
  std::optional<mlir::presburger::PresburgerSet>
  project(unsigned numDims) const;
  /// A small point of `set`, whose dims are the first columns of this system.
  std::optional<Point>
  findPoint(const mlir::presburger::PresburgerSet &set) const;

private:
  struct Row {
    Form form;
    bool isEquality;
    std::optional<std::pair<unsigned, int64_t>> getFixed() const;
  };
  using Disjunct = std::vector<Row>;
  std::optional<bool> hasPoint(const Disjunct &disjunct) const;
  static bool contradict(const Disjunct &a, const Disjunct &b);
  /// The remainder of some division, as a form with range [0, most]. Skips
  /// those that an equality determines.
  static std::optional<std::pair<Form, int64_t>>
  findRemainder(const Disjunct &disjunct);
  void dropEmpty(std::vector<Disjunct> &cases) const;

  mlir::presburger::IntegerPolyhedron getPolyhedron(const Disjunct &disjunct,
                                                    unsigned numDims) const;
  /// True if examples should have small values in the column (sizes, scalars).
  bool isNamed(unsigned column) const;

  const RowModel *model;
  Work *work;
  unsigned numColumns = 0;
  llvm::DenseMap<std::pair<Var, unsigned>, unsigned> columns;
  std::vector<bool> named;
  std::vector<Disjunct> disjuncts;
  bool isTooLarge = false;
};

/// The constraints of the set; locals are the columns after its dims. Returns
/// nullopt if a number overflows 64 bits.
std::optional<std::vector<SparseRow>>
getSparseRows(const mlir::presburger::IntegerRelation &set);
/// `set` minus `other`, or a part that is not empty if there are more than
/// `Budget::pieces` pieces. Disjuncts of `other` with locals that are no
/// quotients are not subtracted. Returns nullopt if the budget runs out.
std::optional<mlir::presburger::PresburgerSet>
subtract(const mlir::presburger::PresburgerSet &set,
         const mlir::presburger::PresburgerSet &other, Work &work);
/// True if the set has no point. Returns nullopt if the budget runs out.
std::optional<bool> isEmpty(const mlir::presburger::PresburgerSet &set,
                            Work &work);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_LINEARSYSTEM_H
