//===- LseValues.h - what depends on a log-sum-exp --------------*- C++ -*-===//
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

/// A set of up to 64 lse loads.
using LseSet = std::uint64_t;

/// The values of a kernel's rows, numbered so that two which are computed alike
/// have one number; which of them are lses, and what depends on those.
class LseValues {
public:
  explicit LseValues(KernelOp kernel);

  /// The loads of an lse, outside of the algebra; their position is their
  /// number among lses.
  llvm::ArrayRef<LoadOp> getLses() const { return lses; }
  /// The number of an lse that `value` is; none for other values.
  std::optional<unsigned> getLse(mlir::Value value) const;
  /// The lses that say whether the row that `load` reads is empty: those of the
  /// tensor that a state op pairs it with, and those at the same indices.
  LseSet getLsesOfPayload(LoadOp load) const;

  unsigned getNumber(mlir::Value value) const { return numbers.lookup(value); }
  unsigned getCount() const { return count; }
  /// The innermost loop that computes a value anew in each iteration, as its
  /// number; 0: none.
  unsigned getLoop(unsigned number) const { return loops[number]; }
  unsigned getLoopNumber(mlir::Operation *loop) const {
    return loopNumbers.lookup(loop);
  }
  unsigned getLoopCount() const { return loopNumbers.size() + 1; }

  bool dependsOnLse(mlir::Value value) const {
    return dependent.test(getNumber(value));
  }
  /// True if `op`, or an op in it, stores what depends on an lse.
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
  /// Payloads and the lses that state ops pair them with, as arguments.
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
