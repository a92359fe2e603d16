//===- HoistLoads.cpp - loads before arithmetic ---------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Mlafix.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-hoist-loads"

namespace mlafix {
#define GEN_PASS_DEF_HOISTLOADSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// Moves `op` and what it needs of the ops between `anchor` and itself to right
/// before `anchor`. Answers false, having moved nothing, if it needs `anchor`
/// or an op that may not move.
static bool hoist(Operation *op, Operation *anchor) {
  SmallVector<Operation *> slice;
  llvm::SmallPtrSet<Operation *, 8> inSlice;
  SmallVector<Operation *> worklist = {op};
  while (!worklist.empty()) {
    Operation *next = worklist.pop_back_val();
    if (next->getBlock() != anchor->getBlock() ||
        next->isBeforeInBlock(anchor) || !inSlice.insert(next).second)
      continue;
    if (next == anchor || (next != op && !isMemoryEffectFree(next)))
      return false;
    slice.push_back(next);
    next->walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        if (Operation *def = operand.getDefiningOp())
          worklist.push_back(def);
    });
  }
  LDBG() << *op << ": before " << *anchor;
  llvm::sort(slice,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *moved : slice)
    moved->moveBefore(anchor);
  return true;
}

static bool isLoad(Operation *op) {
  return isa<vector::LoadOp, vector::MaskedLoadOp, memref::LoadOp>(op);
}

/// Moves the loads with, or those without, a predicate up to the first op that
/// may wait for one.
static void hoistLoads(Block &block, bool predicated) {
  Operation *anchor = nullptr;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    bool isPredicated = isa<vector::MaskedLoadOp>(op);
    if (isLoad(&op) && isPredicated == predicated) {
      // Behind what it needs itself; those after it gather there, too.
      while (anchor && !hoist(&op, anchor)) {
        anchor = anchor->getNextNode();
        if (anchor == &op)
          anchor = nullptr;
      }
      continue;
    }
    if (isLoad(&op) ? predicated : mayWrite(&op) && !isShuffle(&op))
      anchor = nullptr; // behind loads without a predicate, and stores
    else if (!anchor)
      anchor = &op;
  }
}

/// True if the warps of a row wait for each other in `op`.
static bool waitsForLanes(Operation *op) {
  auto reduce = dyn_cast<ReduceOp>(op);
  return reduce ? !reduce.getInLane() : isa<ScanOp>(op);
}

/// Moves the scalars' loads without a predicate from behind a reduction of a
/// row to before it: where warps wait for each other, no load passes.
static void hoistScalars(Block &block) {
  Operation *anchor = nullptr;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto load = dyn_cast<LoadOp>(op);
    if (load && anchor && !load.getPredicate() && !isRowTile(load.getType()))
      hoist(load, anchor);
    else if (mayWrite(&op))
      anchor = nullptr;
    else if (!anchor && waitsForLanes(&op))
      anchor = &op;
  }
}

namespace {
class HoistLoadsPass : public mlafix::impl::HoistLoadsPassBase<HoistLoadsPass> {
public:
  void runOnOperation() override {
    getOperation().getBody().walk([](Block *block) {
      hoistScalars(*block);
      hoistLoads(*block, /*predicated=*/false);
      hoistLoads(*block, /*predicated=*/true);
    });
  }
};
} // namespace
