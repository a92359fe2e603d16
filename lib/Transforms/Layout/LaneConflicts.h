//===- LaneConflicts.h - where the lanes of a row synchronise ---*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LAYOUT_LANECONFLICTS_H
#define MLAFIX_TRANSFORMS_LAYOUT_LANECONFLICTS_H

#include "dialect/Mlafix.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"

#include <functional>
#include <tuple>

namespace mlafix {

/// True if two accesses may be of the same memory, by different lanes, one of
/// them a write. Lanes move their own elements of a row, and one lane
/// stores all scalars, or the element of a group, in program order; anything
/// else may meet another lane's access, of the same argument or of one that may
/// be the same tensor (N11).
bool mayConflict(KernelOp kernel, const MemoryAccess &a, const MemoryAccess &b);

/// Accesses of a kernel by kind. Two accesses of one kind conflict with the
/// same accesses of other lanes. A kernel has few kinds for each argument,
/// however many accesses, so each pair of kinds is compared once.
class AccessKinds {
public:
  /// `conflict` is symmetric, and is mayConflict() or narrower.
  explicit AccessKinds(
      std::function<bool(const MemoryAccess &, const MemoryAccess &)> conflict)
      : conflict(std::move(conflict)) {}

  /// The number of the access's kind: 0, 1, … in the order of first calls.
  unsigned getKind(const MemoryAccess &access);
  /// The kinds, of those numbered so far, that conflict with `kind`.
  const llvm::BitVector &getConflicts(unsigned kind);
  unsigned size() const { return examples.size(); }

private:
  /// The tensor, the dim of the row, a bit for each property, and the slice.
  using Key = std::tuple<mlir::Value, DimAttr, unsigned, int64_t, int64_t>;

  std::function<bool(const MemoryAccess &, const MemoryAccess &)> conflict;
  llvm::DenseMap<Key, unsigned> kinds;
  llvm::SmallVector<MemoryAccess> examples;  ///< the first of each kind
  llvm::SmallVector<llvm::BitVector> matrix; ///< a row for each kind
};

/// True if lanes of a row wait for each other or exchange values.
bool lanesSynchronise(KernelOp kernel);

/// The same, of a kernel that only `aliases`, pairs of arguments, can make one
/// tensor of two: what a launch lets through.
bool lanesSynchronise(KernelOp kernel, mlir::ArrayAttr aliases);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LAYOUT_LANECONFLICTS_H
