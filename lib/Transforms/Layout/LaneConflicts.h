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

/// True if two accesses, at least one of them a write, may touch the same
/// memory from different lanes. A lane accesses its own elements of a row; one
/// lane stores each scalar or group element; and each lane keeps program order.
/// Anything else may conflict with another lane's access to the same argument,
/// or to one that may alias it (N11).
bool mayConflict(KernelOp kernel, const MemoryAccess &a, const MemoryAccess &b);

/// Groups a kernel's accesses into kinds. Accesses of one kind have the same
/// conflicts. There are few kinds per argument, however many accesses, and each
/// pair of kinds is compared once.
class AccessKinds {
public:
  /// `conflict` is symmetric; it is mayConflict() or stricter.
  explicit AccessKinds(
      std::function<bool(const MemoryAccess &, const MemoryAccess &)> conflict)
      : conflict(std::move(conflict)) {}

  /// The kind of an access: 0, 1, … in the order of first calls.
  unsigned getKind(const MemoryAccess &access);
  /// The kinds known so far that conflict with `kind`.
  const llvm::BitVector &getConflicts(unsigned kind);
  unsigned size() const { return examples.size(); }

private:
  /// Tensor, row dim, flags, and slice.
  using Key = std::tuple<mlir::Value, DimAttr, unsigned, int64_t, int64_t>;

  std::function<bool(const MemoryAccess &, const MemoryAccess &)> conflict;
  llvm::DenseMap<Key, unsigned> kinds;
  llvm::SmallVector<MemoryAccess> examples;  ///< first access of each kind
  llvm::SmallVector<llvm::BitVector> matrix; ///< conflicts, one bit vector per
                                             ///< kind
};

/// True if the lanes of a row synchronise or exchange values.
bool lanesSynchronise(KernelOp kernel);

/// As above, if only the pairs in `aliases` may be the same tensor, which a
/// launch guarantees.
bool lanesSynchronise(KernelOp kernel, mlir::ArrayAttr aliases);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LAYOUT_LANECONFLICTS_H
