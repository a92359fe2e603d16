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

using namespace mlir;
using namespace mlafix;

/// True if two accesses of one row are made by the same lane, element by
/// element. An element for a group is stored by the first lane of that, and
/// loaded by all.
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

bool mlafix::conflictAlike(const MemoryAccess &a, const MemoryAccess &b) {
  return a.memref == b.memref && a.isRow == b.isRow && a.isWrite == b.isWrite &&
         a.getRowDim() == b.getRowDim() && a.isPartAs(b);
}

/// True if the row is reduced, scanned or swapped, or two of its accesses
/// conflict.
static bool lanesSynchronise(
    KernelOp kernel,
    function_ref<bool(const MemoryAccess &, const MemoryAccess &)> conflict) {
  bool reduces =
      kernel
          .walk([](Operation *op) {
            auto reduce = dyn_cast<ReduceOp>(op);
            bool meets = reduce ? !reduce.getInLane() : isa<ScanOp, SwapOp>(op);
            return meets ? WalkResult::interrupt() : WalkResult::advance();
          })
          .wasInterrupted();
  SmallVector<MemoryAccess> accesses = collectAccesses(kernel);
  return reduces || llvm::any_of(accesses, [&](const MemoryAccess &a) {
           return llvm::any_of(
               accesses, [&](const MemoryAccess &b) { return conflict(a, b); });
         });
}

bool mlafix::lanesSynchronise(KernelOp kernel) {
  return ::lanesSynchronise(kernel,
                            [&](const MemoryAccess &a, const MemoryAccess &b) {
                              return mayConflict(kernel, a, b);
                            });
}

bool mlafix::lanesSynchronise(KernelOp kernel, ArrayAttr aliases) {
  return ::lanesSynchronise(kernel, [&](const MemoryAccess &a,
                                        const MemoryAccess &b) {
    bool canBeOne = a.memref == b.memref ||
                    isAliasPair(aliases, a.getArgNumber(), b.getArgNumber());
    return canBeOne && mayConflict(kernel, a, b);
  });
}
