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

/// Limits that keep a question short: a larger system is left undecided.
struct Budget {
  static constexpr unsigned columns = 40;
  static constexpr unsigned disjuncts = 32;
  // Before those without a point are dropped.
  static constexpr unsigned candidates = 128;
  static constexpr unsigned rows = 96; // of one disjunct
  // Of a disjunct, columns that exist and that no equality gives; and where
  // they are several, their factors. The time to solve for them grows with the
  // factors, except for one alone.
  static constexpr unsigned locals = 2;
  static constexpr int64_t factor = 64;
  static constexpr unsigned pieces = 64; // of a difference, at each step
  // Columns of a set of which MLIR's Presburger library looks for a point: the
  // time that takes grows exponentially.
  static constexpr unsigned sampled = 13;
  // Of one kernel: examples that are run, and the ops that all of these run.
  static constexpr unsigned examples = 32;
  static constexpr int64_t steps = 1 << 17;
  // Units of Work: of one question at most, of a kernel, and of each question
  // that comes when the kernel's are used up.
  static constexpr int64_t question = 8'000'000, kernel = 24'000'000,
                           last = 400'000;
};

class LinearSystem {
public:
  /// A point of the set: a value for each column.
  using Point = llvm::SmallVector<int64_t>;

  /// What the system decides is taken off `work`.
  LinearSystem(const RowModel &model, Work &work)
      : model(&model), work(&work), disjuncts(1) {}

  /// A column of its own.
  Form addColumn();
  /// The column of a variable; where it is new, its range and definition become
  /// part of the set.
  unsigned getColumn(Var var, unsigned instance = 0);
  /// The column of a variable, if it has one.
  std::optional<unsigned> findColumn(Var var, unsigned instance = 0) const;
  Form getForm(const Linear &linear, unsigned instance = 0);

  /// Restricts the set to form >= 0, or == 0.
  void restrict(const Form &form, bool isEquality = false);
  void restrict(const Condition &condition, unsigned instance = 0);

  unsigned getNumColumns() const { return numColumns; }
  bool isOverBudget() const;
  /// Makes a case of each value that remainders of divisions have. Then what
  /// divisions by different numbers give is linear. False, and as it was: there
  /// are none, or too many.
  bool splitRemainders();
  /// Forgets all constraints, and keeps the columns.
  void clear() { disjuncts.assign(1, {}); }

  /// True if there is no point at all; none where that takes too long.
  std::optional<bool> isEmpty() const;
  /// A point whose sizes and scalars are as small as they can be, roughly.
  std::optional<Point> findPoint() const;
  mlir::presburger::PresburgerSet getSet() const;
  /// The set as one of its first `numDims` columns, of which the others, that
  /// exist, become quotients; none where that takes too long.
  std::optional<mlir::presburger::PresburgerSet>
  project(unsigned numDims) const;
  /// A small point of `set`, whose dims are the first columns.
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
  /// A remainder, which is at least 0, and the most that it is, unless an
  /// equality gives it.
  static std::optional<std::pair<Form, int64_t>>
  findRemainder(const Disjunct &disjunct);
  void dropEmpty(std::vector<Disjunct> &cases) const;

  mlir::presburger::IntegerPolyhedron getPolyhedron(const Disjunct &disjunct,
                                                    unsigned numDims) const;
  /// True if sizes and scalars are to be small in examples.
  bool isNamed(unsigned column) const;

  const RowModel *model;
  Work *work;
  unsigned numColumns = 0;
  llvm::DenseMap<std::pair<Var, unsigned>, unsigned> columns;
  std::vector<bool> named;
  std::vector<Disjunct> disjuncts;
  bool isTooLarge = false;
};

/// `set` without `other`, whose locals are quotients; none where that has too
/// many pieces.
std::optional<mlir::presburger::PresburgerSet>
subtract(mlir::presburger::PresburgerSet set,
         const mlir::presburger::PresburgerSet &other, Work &work);
/// True if the set has no point; none where that takes too long.
std::optional<bool> isEmpty(const mlir::presburger::PresburgerSet &set,
                            Work &work);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_LINEARSYSTEM_H
