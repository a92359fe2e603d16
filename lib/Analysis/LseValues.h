//===- LseValues.h - values that depend on a log-sum-exp --------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_LSEVALUES_H
#define MLAFIX_ANALYSIS_LSEVALUES_H

#include "dialect/Mlafix.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace mlafix {

/// A set of up to 64 lse loads: bit i stands for getLses()[i].
using LseSet = std::uint64_t;

/// Numbers the values in a kernel's rows; equal computations get equal numbers.
/// Records which values are lses, and which depend on lses.
class LseValues {
public:
  explicit LseValues(KernelOp kernel);

  /// Returns the ops that load lses directly, not as part of a state. An LseSet
  /// refers to a load by its position in this list.
  llvm::ArrayRef<LoadOp> getLses() const { return lses; }
  /// Returns the position of `value` in getLses(), or nullopt if it is no lse.
  std::optional<unsigned> getLse(mlir::Value value) const;
  /// Returns the lses that show if the row read by `load` is empty: those
  /// loaded at the same indices. If state ops pair the row's tensor with lse
  /// tensors, only lses of these tensors count.
  LseSet getLsesOfPayload(LoadOp load) const;

  unsigned getNumber(mlir::Value value) const { return numbers.lookup(value); }
  unsigned getCount() const { return count; }
  /// Returns the number of the innermost loop that recomputes the value
  /// numbered `number` in each iteration. Returns 0 if no loop does.
  unsigned getLoop(unsigned number) const { return loops[number]; }
  unsigned getLoopNumber(mlir::Operation *loop) const {
    return loopNumbers.lookup(loop);
  }
  unsigned getLoopCount() const { return loopNumbers.size() + 1; }

  bool dependsOnLse(mlir::Value value) const {
    return dependent.test(getNumber(value));
  }
  /// True if `op`, or an op inside it, stores a value that depends on an lse.
  bool storesLse(mlir::Operation *op) const { return stores.contains(op); }

private:
  void visit(mlir::Block &block, unsigned loop);
  void visit(mlir::Operation &op, unsigned loop);
  void number(mlir::Value value, unsigned loop, bool isDependent);
  mlir::Operation *findAlike(mlir::Operation &op);
  bool mayDiffer(mlir::Operation *first, mlir::Operation &last) const;
  bool isLse(mlir::Value tensor) const;
  bool isDependent(mlir::Operation &op) const;
  void noteStore(mlir::Operation &op);

  KernelOp kernel;
  llvm::SmallVector<LoadOp> lses;
  llvm::DenseMap<unsigned, unsigned> lseOfNumber;
  /// The (payload, lse) pairs of arguments that one state op uses together.
  llvm::DenseSet<std::pair<mlir::Value, mlir::Value>> states;
  llvm::DenseSet<mlir::Value> lseTensors, written;

  llvm::DenseMap<mlir::Value, unsigned> numbers;
  llvm::SmallVector<unsigned> loops;
  llvm::DenseMap<mlir::Operation *, unsigned> loopNumbers;
  llvm::DenseMap<size_t, llvm::SmallVector<mlir::Operation *, 1>> alike;
  llvm::BitVector dependent;
  llvm::DenseSet<mlir::Operation *> stores;
  unsigned count = 0;
};

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_LSEVALUES_H
