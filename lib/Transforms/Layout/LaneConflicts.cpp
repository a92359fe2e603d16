//===- LaneConflicts.cpp - where the lanes of a row synchronise -----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Layout/LaneConflicts.h"
#include "dialect/Guards.h"
#include "lib/Analysis/Aliasing.h"
#include "lib/Transforms/Target.h"

#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace mlafix;

/// Returns true if two accesses to a row assign each element to the same lane.
/// If the row has one element per group, both must be stores or both loads: the
/// first lane of a group stores the element, but all lanes of the group load
/// it.
static bool areSharedAlike(const MemoryAccess &a, const MemoryAccess &b) {
  if (!a.isRow || !b.isRow || !a.isPartAs(b))
    return false;
  if (!a.isPerGroup() && !b.isPerGroup())
    return true;
  return a.getRowDim() == b.getRowDim() && a.isWrite == b.isWrite;
}

bool mlafix::mayConflict(KernelOp kernel, const MemoryAccess &a,
                         const MemoryAccess &b) {
  bool isOneLane =
      areSharedAlike(a, b) || (a.isWrite && !a.isRow && b.isWrite && !b.isRow);
  if ((!a.isWrite && !b.isWrite) || isOneLane ||
      a.getElementType() != b.getElementType())
    return false;
  return a.memref == b.memref ||
         !areGuardedDistinct(kernel.getGuardsAttr(), a.getArgNumber(),
                             b.getArgNumber());
}

unsigned AccessKinds::getKind(const MemoryAccess &access) {
  unsigned properties = 0;
  for (bool property :
       {access.isRow, access.isWrite, access.isShifted,
        static_cast<bool>(access.group), access.member || access.allMembers})
    properties = 2 * properties + property;
  // A slice is never empty, so an empty slice stands for no slice.
  RowSlice slice = access.slice.value_or(RowSlice());
  auto [found, isNew] =
      kinds.try_emplace(Key(access.memref, access.getRowDim(), properties,
                            slice.begin, slice.end),
                        examples.size());
  if (isNew)
    examples.push_back(access);
  return found->second;
}

const llvm::BitVector &AccessKinds::getConflicts(unsigned kind) {
  matrix.resize(examples.size());
  llvm::BitVector &row = matrix[kind];
  unsigned known = row.size();
  row.resize(examples.size());
  for (unsigned other = known; other < examples.size(); ++other)
    row[other] = conflict(examples[kind], examples[other]);
  return row;
}

/// Returns true if a row is reduced, scanned or swapped, or if two accesses
/// conflict.
static bool lanesSynchronise(KernelOp kernel, AccessKinds kinds) {
  bool reduces = anyOp(kernel, [](Operation *op) {
    auto reduce = dyn_cast<ReduceOp>(op);
    return reduce ? !reduce.getInLane() : isa<ScanOp, SwapOp>(op);
  });
  if (reduces)
    return true;
  for (const MemoryAccess &access : collectAccesses(kernel))
    kinds.getKind(access);
  return llvm::any_of(llvm::seq(kinds.size()), [&](unsigned kind) {
    return kinds.getConflicts(kind).any();
  });
}

bool mlafix::lanesSynchronise(KernelOp kernel) {
  return ::lanesSynchronise(
      kernel, AccessKinds([=](const MemoryAccess &a, const MemoryAccess &b) {
        return mayConflict(kernel, a, b);
      }));
}

bool mlafix::lanesSynchronise(KernelOp kernel, ArrayAttr aliases) {
  return ::lanesSynchronise(
      kernel, AccessKinds([=](const MemoryAccess &a, const MemoryAccess &b) {
        bool canBeOne =
            a.memref == b.memref ||
            isAliasPair(aliases, a.getArgNumber(), b.getArgNumber());
        return canBeOne && mayConflict(kernel, a, b);
      }));
}
