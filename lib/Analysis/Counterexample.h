//===- Counterexample.h - launches that refute a question -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_COUNTEREXAMPLE_H
#define MLAFIX_ANALYSIS_COUNTEREXAMPLE_H

#include "lib/Analysis/LinearSystem.h"
#include "lib/Analysis/RowInterpreter.h"

namespace mlafix {

/// Turns a point of a linear system into a launch with memory contents. run()
/// executes this launch, so that only a violation that really occurs is
/// reported.
class Counterexample {
public:
  Counterexample(RowModel &model, const LinearSystem &system,
                 const LinearSystem::Point &point);

  /// Executes the launch. Returns the violation of `question` in `argument`, or
  /// nullopt if there is none. Executes at most `steps` ops and subtracts the
  /// number of executed ops from `steps`.
  std::optional<Violation> run(Question question, unsigned argument,
                               int64_t &steps);
  /// Describes the launch, the row of `violation` and the values that this row
  /// reads: "n = 1, H = 1, i = 0".
  std::string describe(const Violation &violation) const;

private:
  std::optional<int64_t> get(Var var, unsigned instance) const {
    std::optional<unsigned> column = system.findColumn(var, instance);
    if (!column || *column >= point.size())
      return std::nullopt;
    return point[*column];
  }
  void readLaunch();
  void readRows();
  void readSegments();
  /// Returns the value that the point gives to one of the variables `vars`.
  /// Prefers the value in `row` to a value in another row. Returns nullopt if
  /// the point gives none of them a value.
  std::optional<int64_t> find(llvm::ArrayRef<Var> vars,
                              llvm::ArrayRef<int64_t> row) const;
  /// Returns the value of the unknown `value` in `row`. If the point does not
  /// determine the value, uses `other` to pick a possible one. If `value`
  /// compares two floats, records the comparison in `compared`.
  int64_t choose(mlir::Value value, llvm::ArrayRef<int64_t> row, int64_t other);
  bool haveFloats() const;

  RowModel &model;
  const LinearSystem &system;
  const LinearSystem::Point &point;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Var, 1>> unknowns;
  SmallLaunch launch;
  llvm::SmallVector<llvm::SmallVector<int64_t>, 2> rows;
  llvm::SmallVector<int64_t> segments;
  /// Records which value an unknown got during the run.
  struct Given {
    llvm::SmallVector<int64_t> row;
    mlir::Value unknown;
    int64_t value;
  };
  std::vector<Given> given;
  /// Records the assumed outcome of a comparison of two floats in `row`.
  struct Compared {
    llvm::SmallVector<int64_t> row;
    mlir::Value x, y;
    int64_t relation; ///< as in FloatComparison: 0 less, 1 equal, …
  };
  std::vector<Compared> compared;
};

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_COUNTEREXAMPLE_H
