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

/// Returns true if two accesses, at least one of them a write, may touch the
/// same memory from different lanes. Each lane keeps program order, so two
/// accesses to elements of a row do not conflict if each element belongs to the
/// same lane in both. Neither do two stores of scalars or group elements, since
/// one lane executes both. All other pairs may conflict if they access the same
/// argument, or arguments that may alias (N11).
bool mayConflict(KernelOp kernel, const MemoryAccess &a, const MemoryAccess &b);

/// Groups the accesses of a kernel into kinds. Accesses of one kind have the
/// same conflicts. So only pairs of kinds are compared, each once, and an
/// argument with many accesses has few kinds.
class AccessKinds {
public:
  /// `conflict` must be symmetric. It is mayConflict() or a stricter test.
  explicit AccessKinds(
      std::function<bool(const MemoryAccess &, const MemoryAccess &)> conflict)
      : conflict(std::move(conflict)) {}

  /// Returns the number of an access's kind: 0, 1, … in the order of first
  /// calls.
  unsigned getKind(const MemoryAccess &access);
  /// Returns the kinds known so far that conflict with `kind`.
  const llvm::BitVector &getConflicts(unsigned kind);
  unsigned size() const { return examples.size(); }

private:
  /// The properties that define a kind: tensor, row dim, flags, and begin and
  /// end of the slice.
  using Key = std::tuple<mlir::Value, DimAttr, unsigned, int64_t, int64_t>;

  std::function<bool(const MemoryAccess &, const MemoryAccess &)> conflict;
  llvm::DenseMap<Key, unsigned> kinds;
  llvm::SmallVector<MemoryAccess> examples; ///< first access of each kind
  /// For each kind, the set of kinds that conflict with it.
  llvm::SmallVector<llvm::BitVector> matrix;
};

/// Returns true if the lanes of a row synchronise or exchange values.
bool lanesSynchronise(KernelOp kernel);

/// Returns true if the lanes of a row synchronise or exchange values in
/// launches which guarantee that only the pairs in `aliases` may be the same
/// tensor.
bool lanesSynchronise(KernelOp kernel, mlir::ArrayAttr aliases);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LAYOUT_LANECONFLICTS_H
