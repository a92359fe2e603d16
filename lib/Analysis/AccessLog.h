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

/// Records which rows of a run read and write each element, and finds
/// violations.
class AccessLog {
public:
  /// An element of an argument.
  using TensorElement = std::pair<unsigned, std::vector<int64_t>>;
  /// Number of leading elements that are tracked if rows are loaded or stored
  /// whole.
  static constexpr int64_t kRowElements = 4;

  AccessLog(KernelOp kernel, const SmallLaunch &launch);

  /// The tracked elements of a row in ascending order, regardless of its size:
  /// the first ones; if the kernel accesses parts of rows, the first of the
  /// first groups; if it accesses slices, also both ends of each slice and the
  /// element after it.
  llvm::SmallVector<int64_t> getElementsOfRow(unsigned argument) const;

  /// Records an access of `row` to an element inside the tensor.
  void add(const MemoryAccess &access, llvm::ArrayRef<int64_t> row,
           llvm::ArrayRef<int64_t> element);
  /// Keeps the first violation of each question in each argument.
  void report(Question question, unsigned argument, mlir::Operation *op,
              llvm::ArrayRef<int64_t> row, llvm::ArrayRef<int64_t> element);
  /// Returns all violations. Some are found only here, at the end of the run.
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
  /// Group sizes, by argument, where the kernel accesses parts of rows.
  llvm::DenseMap<unsigned, int64_t> groups;
  /// Elements to track besides the first ones, by argument.
  llvm::DenseMap<unsigned, std::set<int64_t>> ends;
  llvm::SmallDenseSet<unsigned> byRows; ///< arguments that a row has accessed
                                        ///< as a whole
  llvm::SmallDenseSet<unsigned> ofRows; ///< arguments that some op accesses by
                                        ///< whole rows

  /// Limit of the elements per tensor that are checked for coverage.
  static constexpr int64_t kMaxElements = 100000;
};

/// True if the value is the same in all rows and does not depend on memory.
/// `depth` bounds the search: four ops suffice for the casts and the splat of a
/// constant.
bool isUniform(mlir::Value value, unsigned depth = 4);
/// True if both are one value, or the results of equal ops without effects on
/// such values.
bool isSameNumber(mlir::Value x, mlir::Value y, unsigned depth = 4);
/// True if two stores to one argument write the same number to every element
/// that both write, and this number depends on no row, iteration or memory: a
/// constant, an identity, a scalar argument, or arithmetic on these.
bool writeOneNumber(const MemoryAccess &a, const MemoryAccess &b);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_ACCESSLOG_H
