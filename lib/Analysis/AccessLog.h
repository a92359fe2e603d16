//===- AccessLog.h - records accesses and finds violations ------*- C++ -*-===//
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

/// Records which rows of an interpreted launch read and write each element of
/// its tensors. Finds violations of the properties that the prover proves.
class AccessLog {
public:
  /// An element of a tensor: the argument's position and the element's indices.
  using TensorElement = std::pair<unsigned, std::vector<int64_t>>;
  /// The number of leading elements to track in a row that is loaded or stored
  /// as a whole.
  static constexpr int64_t kRowElements = 4;

  AccessLog(KernelOp kernel, const SmallLaunch &launch);

  /// Returns the positions to track in a row of `argument`, in ascending order.
  /// The positions do not depend on the row's length, so some may be past the
  /// row's end. They are the positions of the first elements, of both ends of
  /// each slice, and of the element after each slice. If the kernel accesses
  /// groups or members of rows, the positions are instead those of the first
  /// elements of the first groups.
  llvm::SmallVector<int64_t> getElementsOfRow(unsigned argument) const;

  /// Records that `row` accesses an element of the tensor. The element must be
  /// in bounds.
  void add(const MemoryAccess &access, llvm::ArrayRef<int64_t> row,
           llvm::ArrayRef<int64_t> element);
  /// Records a violation, unless one with the same question and argument has
  /// been recorded.
  void report(Question question, unsigned argument, mlir::Operation *op,
              llvm::ArrayRef<int64_t> row, llvm::ArrayRef<int64_t> element);
  /// Returns all violations. Checks coverage and independence first, since
  /// these two checks need all accesses of the launch.
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
  /// Maps an argument to its group size if the kernel accesses groups or
  /// members of its rows.
  llvm::DenseMap<unsigned, int64_t> groups;
  /// Maps an argument to the positions to track for its slices: both ends of
  /// each slice, and the element after it.
  llvm::DenseMap<unsigned, std::set<int64_t>> ends;
  /// The arguments of which the launch has accessed a row, and not only single
  /// elements.
  llvm::SmallDenseSet<unsigned> byRows;
  /// The arguments of which some op of the kernel accesses a row, even if the
  /// launch does not execute this op.
  llvm::SmallDenseSet<unsigned> ofRows;

  /// The largest number of elements of a tensor for which coverage is checked.
  static constexpr int64_t kMaxElements = 100000;
};

/// True if `value` is the same in all rows and does not depend on memory. Looks
/// through at most `depth` ops; four suffice for a constant with casts and a
/// splat.
bool isUniform(mlir::Value value, unsigned depth = 4);
/// True if `x` and `y` are the same value, or if two equal ops without side
/// effects compute them from operands of which this is true. Looks through at
/// most `depth` ops.
bool isSameNumber(mlir::Value x, mlir::Value y, unsigned depth = 4);
/// True if the stores `a` and `b` to one argument write the same number
/// wherever both write, and if that number does not depend on the row, the
/// iteration or memory.
bool writeOneNumber(const MemoryAccess &a, const MemoryAccess &b);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_ACCESSLOG_H
