//===- ScheduleDependentLaunch.cpp - loads are issued before one is waited for
//-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Where a load's address comes of another load, ptxas 13.0 issues the first of
// the other rows' loads, then waits for the one that has the address, and then
// issues the rest. It moves no load across `griddepcontrol.launch_dependents`:
// that comes behind the index, and the rows that need no memory to be found.
//
// ptxas waits for the index ahead of it, so that the next grid begins once the
// index is there. A grid whose rows have all been prefetched lets it begin at
// once, too: it has nothing to lose to what the next grid prefetches.
//
// Lane groups load their first chunk ahead of the merge loop: the next grid,
// whose prefetches take turns with these loads, begins behind them.
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Late/PrefetchCandidates.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Speculation.h"
#include "lib/Transforms/Target.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-schedule-dependent-launch"

namespace mlafix {
#define GEN_PASS_DEF_SCHEDULEDEPENDENTLAUNCHPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// The next op with memory effects; null if there is none.
static Operation *getNextEffect(Operation *op) {
  do
    op = op->getNextNode();
  while (op && isMemoryEffectFree(op));
  return op;
}

/// The branch behind `launch`, if nothing else follows; else null.
static scf::IfOp getGuard(Operation *launch) {
  auto guard = dyn_cast_or_null<scf::IfOp>(getNextEffect(launch));
  return guard && guard.getNumResults() == 0 ? guard : scf::IfOp();
}

static bool loadsOnly(scf::IfOp branch) {
  return !branch
              ->walk([](Operation *op) {
                bool loads = isa<LLVM::LoadOp, LLVM::MaskedLoadOp>(op);
                return loads || op->getNumRegions() || isMemoryEffectFree(op)
                           ? WalkResult::advance()
                           : WalkResult::interrupt();
              })
              .wasInterrupted();
}

/// The last of the branches with the loads of loops' first chunks
/// (mlafix-load-chunks-ahead) directly behind `launch`; null if there is none.
static scf::IfOp getFirstChunks(Operation *launch) {
  scf::IfOp last;
  for (Operation *op = getNextEffect(launch); op; op = getNextEffect(op)) {
    if (isa<LLVM::LoadOp, LLVM::MaskedLoadOp>(op))
      continue;
    auto branch = dyn_cast<scf::IfOp>(op);
    bool isCarried = branch && llvm::any_of(branch->getUsers(), [](auto *user) {
                       return isa<scf::ForOp>(user);
                     });
    if (!isCarried || !loadsOnly(branch))
      break;
    last = branch;
  }
  return last;
}

/// True if `value` depends on a load in `block`; adds the impure ops that it
/// depends on to `of`.
static bool needsMemory(Value value, Block &block,
                        llvm::SmallSetVector<Operation *, 4> &of) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != &block)
    return false;
  if (!isPure(op) || op->getNumRegions()) {
    of.insert(op);
    return true;
  }
  bool needs = false;
  for (Value operand : op->getOperands())
    needs |= needsMemory(operand, block, of);
  return needs;
}

/// True if `op` loads a pack without a predicate.
static bool isRowLoad(Operation &op) {
  auto load = dyn_cast<LLVM::LoadOp>(op);
  auto type = load ? dyn_cast<VectorType>(load.getType()) : VectorType();
  return type && type.getNumElements() > 1 && isGlobal(load.getAddr());
}

/// The loads to schedule first, if some load depends on another: those that
/// others depend on, then the rows that do not depend on memory and precede the
/// first write. Empty if there are no such rows.
static SmallVector<LLVM::LoadOp> collectLoads(Block &block) {
  SmallVector<LLVM::LoadOp> rows, loads;
  llvm::SmallSetVector<Operation *, 4> needed;
  for (Operation &op : block) {
    if (isMemoryEffectFree(&op))
      continue;
    if (!isa<LLVM::LoadOp, LLVM::MaskedLoadOp>(op))
      break;
    bool needs = false;
    for (Value operand : op.getOperands())
      needs |= needsMemory(operand, block, needed);
    if (!needs && isRowLoad(op))
      rows.push_back(cast<LLVM::LoadOp>(op));
  }
  if (needed.empty() || rows.empty())
    return {};
  for (Operation *op : needed)
    if (auto index = dyn_cast<LLVM::LoadOp>(op); index && !isRowLoad(*op))
      loads.push_back(index);
  llvm::append_range(loads, rows);
  return loads;
}

/// The launch trigger as assembly that LLVM treats as a store: it would move
/// loads across the intrinsic.
static Operation *buildLaunchAssembly(OpBuilder &b, Location loc) {
  return LLVM::InlineAsmOp::create(
      b, loc, TypeRange(), ValueRange(), "griddepcontrol.launch_dependents;",
      "~{memory}", /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(),
      ArrayAttr());
}

/// Bytes of rows that `op` loads per thread.
static int64_t countRowBytes(Operation &op) {
  return isRowLoad(op)
             ? DataLayout::closest(&op).getTypeSize(op.getResult(0).getType())
             : llvm::TypeSize::getFixed(0);
}

static int64_t countRowBytes(Block &block) {
  int64_t bytes = 0;
  for (Operation &op : block)
    bytes += countRowBytes(op);
  return bytes;
}

/// Keeps `launch` in place for grids that prefetch all of their rows, `bytes`
/// per thread.
static void keepIfPrefetched(Operation *launch, int64_t bytes) {
  // ScheduleGridWait.cpp counts the prefetching threads in the same way.
  OpBuilder b(launch);
  Location loc = launch->getLoc();
  Value threads = LLVM::MulOp::create(b, loc, buildGridSize(b, loc),
                                      buildBlockSize(b, loc));
  int64_t most = getMachine(launch).earlyBytes / std::max<int64_t>(1, bytes);
  Value isPrefetched = LLVM::ICmpOp::create(
      b, loc, LLVM::ICmpPredicate::ule, threads,
      LLVM::ConstantOp::create(b, loc, b.getI32Type(), most));
  auto early =
      scf::IfOp::create(b, loc, isPrefetched, /*withElseRegion=*/false);
  launch->moveBefore(early.thenBlock()->getTerminator());
}

namespace {
class ScheduleDependentLaunchPass
    : public mlafix::impl::ScheduleDependentLaunchPassBase<
          ScheduleDependentLaunchPass> {
public:
  void runOnOperation() override {
    SmallVector<Operation *> launches;
    getOperation().walk([&](Operation *op) {
      if (isGridControl(op) && !isGridWait(op))
        launches.push_back(op);
    });
    for (Operation *launch : launches) {
      if (scf::IfOp guard = getGuard(launch))
        place(launch, *guard.thenBlock());
      if (scf::IfOp chunks = getFirstChunks(launch)) {
        OpBuilder b(chunks->getContext());
        b.setInsertionPointAfter(chunks);
        buildLaunchAssembly(b, launch->getLoc());
        keepIfPrefetched(launch, countRowBytes(*chunks.thenBlock()));
      }
    }
  }

private:
  static void place(Operation *launch, Block &block);
};
} // namespace

void ScheduleDependentLaunchPass::place(Operation *launch, Block &block) {
  SmallVector<LLVM::LoadOp> loads = collectLoads(block);
  llvm::erase_if(loads, [&](LLVM::LoadOp load) {
    return !isKnownBefore(load.getAddr(), launch);
  });
  int64_t bytes = 0;
  for (LLVM::LoadOp load : loads)
    bytes += countRowBytes(*load);
  if (!bytes)
    return;
  LDBG() << loads.size() << " loads before " << *launch;
  Location loc = launch->getLoc();
  auto b = OpBuilder::atBlockBegin(&block);
  Operation *later = buildLaunchAssembly(b, loc);
  for (LLVM::LoadOp load : loads) {
    moveBeforeWait(load.getAddr(), launch);
    load->moveBefore(later);
  }
  keepIfPrefetched(launch, bytes);
}
