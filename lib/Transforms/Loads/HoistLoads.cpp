//===- HoistLoads.cpp - move loads before arithmetic ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Plan.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-hoist-loads"

namespace mlafix {
#define GEN_PASS_DEF_HOISTLOADSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// Moves `op` in front of `anchor`, together with the ops behind `anchor` that
/// `op` needs. Returns false and moves nothing if `op` needs `anchor` or an op
/// behind it that may not move.
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

/// Returns true if `op` is a branch that only prefetches.
static bool onlyPrefetches(Operation *op) {
  auto branch = dyn_cast<scf::IfOp>(op);
  if (!branch || branch.getNumResults() > 0)
    return false;
  bool isAny = false;
  WalkResult walk = branch.walk([&](Operation *nested) {
    bool isPrefetch = isa<memref::PrefetchOp>(nested);
    isAny |= isPrefetch;
    return isPrefetch || isa<scf::IfOp>(nested) || isPure(nested)
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  return isAny && !walk.wasInterrupted();
}

namespace {
/// Kinds of accesses, in the order in which they should execute.
enum class Access { Load, PredicatedLoad, Prefetch, None };
} // namespace

static Access getAccess(Operation *op, bool isAhead) {
  if (isa<vector::MaskedLoadOp>(op))
    return Access::PredicatedLoad;
  if (isa<vector::LoadOp, memref::LoadOp>(op))
    return Access::Load;
  return isAhead && onlyPrefetches(op) ? Access::Prefetch : Access::None;
}

/// Moves each access of `kind`, with the address computations that it needs, up
/// in `block`. No access passes a store, an access of an earlier kind, or the
/// wait for the preceding grid. If `isAhead` is true, branches that only
/// prefetch count as accesses.
static void hoistAccesses(Block &block, Access kind, bool isAhead) {
  auto first =
      llvm::find_if(block, [](Operation &op) { return isGridWait(&op); });
  Operation *anchor = nullptr;
  for (Operation &op : llvm::make_early_inc_range(llvm::make_range(
           first == block.end() ? block.begin() : first, block.end()))) {
    Access access = getAccess(&op, isAhead);
    if (access == kind) {
      // If the access needs the anchor, or ops behind the anchor that may not
      // move, use the next op as the anchor instead.
      while (anchor && !hoist(&op, anchor)) {
        anchor = anchor->getNextNode();
        if (anchor == &op)
          anchor = nullptr;
      }
      continue;
    }
    if (access == Access::None ? mayWrite(&op) && !isShuffle(&op)
                               : access < kind)
      // Accesses must not pass stores and accesses of earlier kinds.
      anchor = nullptr;
    else if (!anchor)
      anchor = &op;
  }
}

/// Returns true if `op` makes the warps of a row synchronise.
static bool waitsForLanes(Operation *op) {
  auto reduce = dyn_cast<ReduceOp>(op);
  return reduce ? !reduce.getInLane() : isa<ScanOp>(op);
}

/// Hoists unpredicated loads of scalars above a reduction of a row. Later
/// passes cannot move a load across the synchronisation of warps.
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
    PlanAttr plan = getOperation().getPlanAttr();
    bool isAhead = plan && plan.getNumber(PlanField::RowsAhead) > 0;
    getOperation().getBody().walk([&](Block *block) {
      hoistScalars(*block);
      for (Access kind :
           {Access::Load, Access::PredicatedLoad, Access::Prefetch})
        hoistAccesses(*block, kind, isAhead);
    });
  }
};
} // namespace
