//===- RepeatRows.cpp - long rows that are made again ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/RepeatRows.h"
#include "lib/Transforms/LaneConflicts.h"
#include "lib/Transforms/LongRows.h"
#include "lib/Transforms/RowAccess.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace mlafix;

/// Whether a store leaves what a load of a row in stage `stage` reads, the
/// store's op being in stage `stored`. No call makes one tensor of arguments
/// whose dims differ.
static bool leavesRow(KernelOp kernel, const MemoryAccess &load,
                      const MemoryAccess &store, int64_t stage,
                      int64_t stored) {
  if (!store.getArgument() ||
      kernel.getArgDims(load.getArgNumber()) !=
          kernel.getArgDims(store.getArgNumber()) ||
      load.getElementType() != store.getElementType())
    return true;
  // Other lanes would have to wait for the load.
  if (mayConflict(kernel, load, store))
    return false;
  if (load.memref != store.memref &&
      areGuardedDistinct(kernel.getGuardsAttr(), load.getArgNumber(),
                         store.getArgNumber()))
    return true;
  // The same packs are stored behind the load, or the stage is over.
  bool isSameRow = llvm::equal(load.indices, store.indices) &&
                   load.group == store.group && load.member == store.member &&
                   !load.allMembers && !store.allMembers;
  return stored > stage || (stored == stage && isSameRow);
}

/// Whether the memory that `load` reads is the same in stage `stage`.
static bool canReload(KernelOp kernel, const Stages &stages, LoadOp load,
                      int64_t stage) {
  std::optional<MemoryAccess> access = getSingleAccess(load);
  if (!access || !access->getArgument() ||
      kernel.isArgPeers(access->getArgNumber()))
    return false;
  for (Operation *op = load->getNextNode(); op; op = op->getNextNode()) {
    if (op->hasTrait<OpTrait::IsTerminator>())
      continue;
    // The rows of a nested block are loops of their own, before this stage's.
    int64_t stored = stages.lookup(op) - (op->getNumRegions() > 0 ? 1 : 0);
    for (const MemoryAccess &other : collectAccesses(op))
      if (other.isWrite && !leavesRow(kernel, *access, other, stage, stored))
        return false;
  }
  return true;
}

/// `canRepeat` without the rows in `seen`: one of them that cannot be made
/// again ends the search.
static bool canRepeatOthers(KernelOp kernel, const Stages &stages, Value row,
                            int64_t stage, function_ref<bool(Value)> isKept,
                            llvm::DenseSet<Value> &seen) {
  if (!seen.insert(row).second)
    return true;
  Operation *op = row.getDefiningOp();
  if (isKept(row) || (op && isUniform(op)))
    return true;
  if (!op || op->getNumRegions() > 0)
    return false;
  if (auto load = dyn_cast<LoadOp>(op))
    return canReload(kernel, stages, load, stage);
  if (!isPackwise(op) && !isa<ScanOp, BroadcastOp>(op))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return !isRowTile(operand.getType()) ||
           canRepeatOthers(kernel, stages, operand, stage, isKept, seen);
  });
}

bool mlafix::canRepeat(KernelOp kernel, const Stages &stages, Value row,
                       int64_t stage, function_ref<bool(Value)> isKept) {
  llvm::DenseSet<Value> seen;
  return canRepeatOthers(kernel, stages, row, stage, isKept, seen);
}
