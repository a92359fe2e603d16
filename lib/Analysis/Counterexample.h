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

/// The launch that a point of a linear system describes, with its memory
/// contents. It is executed before it is reported.
class Counterexample {
public:
  Counterexample(RowModel &model, const LinearSystem &system,
                 const LinearSystem::Point &point);

  /// Executes the launch. Returns the violation of `question` in `argument` if
  /// there is one. Executes at most `steps` ops, and subtracts those that it
  /// executed.
  std::optional<Violation> run(Question question, unsigned argument,
                               int64_t &steps);
  /// "n = 1, H = 1, i = 0": the launch, the row and what it reads.
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
  /// The value of the first of `vars` that the point defines: in `row` if the
  /// point has that row, else in any row.
  std::optional<int64_t> find(llvm::ArrayRef<Var> vars,
                              llvm::ArrayRef<int64_t> row) const;
  /// The value of an unknown in `row`; `other` if the point leaves it open.
  int64_t choose(mlir::Value value, llvm::ArrayRef<int64_t> row, int64_t other);
  bool haveFloats() const;

  RowModel &model;
  const LinearSystem &system;
  const LinearSystem::Point &point;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Var, 1>> unknowns;
  SmallLaunch launch;
  llvm::SmallVector<llvm::SmallVector<int64_t>, 2> rows;
  llvm::SmallVector<int64_t> segments;
  /// The value that an unknown got during the run.
  struct Given {
    llvm::SmallVector<int64_t> row;
    mlir::Value unknown;
    int64_t value;
  };
  std::vector<Given> given;
  /// The assumed outcome of a comparison of two floats.
  struct Compared {
    llvm::SmallVector<int64_t> row;
    mlir::Value x, y;
    int64_t relation; ///< as in FloatComparison
  };
  std::vector<Compared> compared;
};

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_COUNTEREXAMPLE_H
