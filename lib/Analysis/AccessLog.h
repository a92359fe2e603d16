//===- AccessLog.h - who accessed which element -----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_ACCESSLOG_H
#define MLAFIX_ANALYSIS_ACCESSLOG_H

#include "lib/Analysis/SmallLaunch.h"

#include "llvm/ADT/DenseSet.h"

#include <map>
#include <set>

namespace mlafix {

/// The accesses that the rows of a run made to each element, and their faults.
class AccessLog {
public:
  /// An element of an argument.
  using TensorElement = std::pair<unsigned, std::vector<int64_t>>;
  /// Of a row that is moved as one, so many elements are looked at.
  static constexpr int64_t kRowElements = 4;

  AccessLog(KernelOp kernel, const SmallLaunch &launch);

  /// Which elements of a row are looked at, ascending, whatever its size: the
  /// first; where parts of rows are accessed, the first of the first groups;
  /// where slices are, also the ends of each, and what is behind it.
  llvm::SmallVector<int64_t> getElementsOfRow(unsigned argument) const;

  /// An access of `row` to an element that the tensor has.
  void add(const MemoryAccess &access, llvm::ArrayRef<int64_t> row,
           llvm::ArrayRef<int64_t> element);
  /// Keeps the first violation of each question in each argument.
  void report(Question question, unsigned argument, mlir::Operation *op,
              llvm::ArrayRef<int64_t> row, llvm::ArrayRef<int64_t> element);
  /// All violations, those among them that only the end of the run shows.
  std::vector<Violation> finish();

private:
  void checkCoverage();
  void checkIndependence();

  struct Writer {
    llvm::SmallVector<int64_t> row;
    MemoryAccess access;
  };
  struct Reader {
    llvm::SmallVector<int64_t> row;
    mlir::Operation *op;
  };
  KernelOp kernel;
  const SmallLaunch &launch;
  std::map<TensorElement, Writer> writers;
  std::map<TensorElement, llvm::SmallVector<Reader, 2>> readers;
  std::vector<Violation> violations;
  /// Elements of a group, of the arguments of whose rows parts are accessed.
  llvm::DenseMap<unsigned, int64_t> groups;
  /// The elements to look at beside the first ones, by argument.
  llvm::DenseMap<unsigned, std::set<int64_t>> ends;
  llvm::SmallDenseSet<unsigned> byRows; ///< arguments accessed by rows so far
  llvm::SmallDenseSet<unsigned> ofRows; ///< arguments that any op does so

  /// Elements of one tensor that are looked for at most.
  static constexpr int64_t kMaxElements = 100000;
};

/// True if all rows have the value, and nothing in memory decides it. So deep
/// that the casts and the splat of a constant count.
bool isUniform(mlir::Value value, unsigned depth = 4);
/// True if both are one value, or the results of equal ops without effects on
/// such values.
bool isSameNumber(mlir::Value x, mlir::Value y, unsigned depth = 4);
/// True if two stores to one argument write one number to every element that
/// both write, and no row, no iteration and nothing in memory decides which: a
/// constant, an identity, a scalar argument, or what is computed of these.
bool writeOneNumber(const MemoryAccess &a, const MemoryAccess &b);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_ACCESSLOG_H
