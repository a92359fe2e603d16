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

/// A launch that a point of a system describes, and what its memory holds. It
/// is run before it is shown.
class Counterexample {
public:
  Counterexample(RowModel &model, const LinearSystem &system,
                 const LinearSystem::Point &point);

  /// The violation of `question` in `argument`, if one is found within `steps`
  /// ops, of which those are subtracted that were run.
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
  /// Of one of the variables in a row of the point, or in another one.
  std::optional<int64_t> find(llvm::ArrayRef<Var> vars,
                              llvm::ArrayRef<int64_t> row) const;
  /// Of an unknown in a row of the point; where that says nothing, `other`.
  int64_t choose(mlir::Value value, llvm::ArrayRef<int64_t> row, int64_t other);
  bool haveFloats() const;

  RowModel &model;
  const LinearSystem &system;
  const LinearSystem::Point &point;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Var, 1>> unknowns;
  SmallLaunch launch;
  llvm::SmallVector<llvm::SmallVector<int64_t>, 2> rows;
  llvm::SmallVector<int64_t> segments;
  /// A value that was given to an unknown in the run.
  struct Given {
    llvm::SmallVector<int64_t> row;
    mlir::Value unknown;
    int64_t value;
  };
  std::vector<Given> given;
  /// The relation of two floats that a comparison was assumed to find.
  struct Compared {
    llvm::SmallVector<int64_t> row;
    mlir::Value x, y;
    int64_t relation; ///< FloatComparison
  };
  std::vector<Compared> compared;
};

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_COUNTEREXAMPLE_H
