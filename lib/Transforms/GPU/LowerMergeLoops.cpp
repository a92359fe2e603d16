//===- LowerMergeLoops.cpp - chunks and who merges them -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/RowOps.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/MergeStates.h"
#include "lib/Transforms/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-lower-merge-loops"

namespace mlafix {
#define GEN_PASS_DEF_LOWERMERGELOOPSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// Of a pack in shared memory, all of whose buffers begin at multiples of 16
/// bytes.
static llvm::MaybeAlign alignmentOf(Value pack) {
  auto type = cast<VectorType>(pack.getType());
  return llvm::MaybeAlign(std::min<int64_t>(
      16, type.getNumElements() * type.getElementTypeBitWidth() / 8));
}

namespace {
/// Makes an scf.for of a merge loop whose rows are packs. In a layout of lane
/// groups, group g computes the chunks g, g + groups, …; the groups leave
/// theirs in shared memory, and the first group merges them in the order of one
/// group alone.
class MergeLoopLowering {
public:
  MergeLoopLowering(IRRewriter &rewriter, MergeLoopOp op, int64_t threads)
      : b(rewriter), op(op), loc(op.getLoc()),
        base(*op.getBaseAttr().getBase()), threads(threads) {
    if (auto row = op->getParentOfType<RowOp>();
        row && !row.getGroups().empty()) {
      group = row.getGroups()[0];
      groups = row.getGroups()[1];
      groupThreads = row.getGroups()[2];
      member = row.getGroups()[3];
    }
  }

  void run();

private:
  void buildYield(scf::ForOp loop, YieldOp yield);
  SmallVector<Value> merge(ValueRange state, ValueRange next) {
    return buildMerge(b, loc, {LoweredState(state), LoweredState(next)}, base)
        .values();
  }
  Value allocShared(Type type);
  SmallVector<Value> exchange(ValueRange running, ValueRange chunk);
  SmallVector<Value> mergeAll(ArrayRef<Value> buffers, ValueRange running,
                              ValueRange chunk);
  /// Where a thread of `group` leaves its values.
  Value slotOf(Value group) {
    IndexBuilder x(b, loc);
    return x.toIndex(x.add(x.mul(group, groupThreads), member));
  }

  IRRewriter &b;
  MergeLoopOp op;
  Location loc;
  LogBase base;
  int64_t threads; // of a block, at most
  /// Of the row (mlafix.row); null where it has no lane groups.
  Value group, groups, groupThreads, member;
};
} // namespace

void MergeLoopLowering::run() {
  b.setInsertionPoint(op);
  IndexBuilder x(b, loc);
  Value step = x.constant(op.getStep());
  Value stride = groups ? x.mul(step, x.toIndex(groups)) : step;
  auto loop = scf::ForOp::create(b, loc, op.getLower(), op.getUpper(), stride,
                                 op.getInit());
  b.setInsertionPointToStart(loop.getBody());
  Value first = loop.getInductionVar();
  if (groups)
    first = x.add(first, x.mul(step, x.toIndex(group)));
  auto yield = cast<YieldOp>(op.getBody().front().getTerminator());
  b.inlineBlockBefore(&op.getBody().front(), loop.getBody(),
                      loop.getBody()->end(), first);
  buildYield(loop, yield);
  b.replaceOp(op, loop.getResults());
}

/// The end of an iteration: a chunk is merged, or, in lane groups, the chunks
/// of all groups in their order.
void MergeLoopLowering::buildYield(scf::ForOp loop, YieldOp yield) {
  SmallVector<Value> running(loop.getRegionIterArgs());
  SmallVector<Value> chunk(yield.getValues());
  b.setInsertionPoint(yield);
  if (!groups) {
    b.replaceOpWithNewOp<scf::YieldOp>(yield, merge(running, chunk));
    return;
  }
  IndexBuilder x(b, loc);
  Value isShared = x.compare(arith::CmpIPredicate::ugt, groups, x.i32(1));
  auto branch =
      scf::IfOp::create(b, loc, ValueRange(running).getTypes(), isShared,
                        /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, loc, merge(running, chunk));
    b.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(b, loc, exchange(running, chunk));
  }
  b.replaceOpWithNewOp<scf::YieldOp>(yield, branch.getResults());
}

/// Shared memory for a value of each thread of a block.
Value MergeLoopLowering::allocShared(Type type) {
  auto space =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  SmallVector<int64_t> shape = {threads};
  if (auto vector = dyn_cast<VectorType>(type))
    shape.push_back(vector.getNumElements());
  return memref::AllocaOp::create(
      b, loc,
      MemRefType::get(shape, getElementTypeOrSelf(type), AffineMap(), space));
}

/// Every thread leaves its chunk's values in shared memory; the first group
/// merges them, the others keep what they have.
SmallVector<Value> MergeLoopLowering::exchange(ValueRange running,
                                               ValueRange chunk) {
  IndexBuilder x(b, loc);
  Value own = slotOf(group);
  SmallVector<Value> buffers;
  for (Value value : chunk) {
    buffers.push_back(allocShared(value.getType()));
    if (isa<VectorType>(value.getType()))
      vector::StoreOp::create(b, loc, value, buffers.back(),
                              ValueRange{own, x.constant(0)},
                              /*nontemporal=*/false, alignmentOf(value));
    else
      memref::StoreOp::create(b, loc, value, buffers.back(), own);
  }
  NVVM::BarrierOp::create(b, loc);
  Value isFirst = x.compare(arith::CmpIPredicate::eq, group, x.i32(0));
  auto branch = scf::IfOp::create(b, loc, running.getTypes(), isFirst,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, running);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loc, mergeAll(buffers, running, chunk));
  b.setInsertionPointAfter(branch);
  NVVM::BarrierOp::create(b, loc); // the next chunks take the same places
  return branch.getResults();
}

/// The running state with the chunks of all groups, which `buffers` hold.
SmallVector<Value> MergeLoopLowering::mergeAll(ArrayRef<Value> buffers,
                                               ValueRange running,
                                               ValueRange chunk) {
  IndexBuilder x(b, loc);
  auto loop = scf::ForOp::create(b, loc, x.i32(0), groups, x.i32(1), running);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value slot = slotOf(loop.getInductionVar());
  SmallVector<Value> theirs;
  for (auto [buffer, value] : llvm::zip(buffers, chunk)) {
    if (auto type = dyn_cast<VectorType>(value.getType()))
      theirs.push_back(vector::LoadOp::create(
          b, loc, type, buffer, ValueRange{slot, x.constant(0)},
          /*nontemporal=*/false, alignmentOf(value)));
    else
      theirs.push_back(memref::LoadOp::create(b, loc, buffer, slot));
  }
  scf::YieldOp::create(b, loc, merge(loop.getRegionIterArgs(), theirs));
  return loop.getResults();
}

namespace {
class LowerMergeLoopsPass
    : public mlafix::impl::LowerMergeLoopsPassBase<LowerMergeLoopsPass> {
public:
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    SmallVector<MergeLoopOp> loops;
    WalkResult walk = kernel.walk([&](MergeLoopOp loop) {
      loops.push_back(loop);
      if (llvm::none_of(loop.getResultTypes(), isRowTile) && loop.getBase())
        return WalkResult::advance();
      loop.emitError() << "expected a state of packs, got one that "
                          "mlafix-rows-to-packs has not seen";
      return WalkResult::interrupt();
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    for (MergeLoopOp loop : loops) {
      LDBG() << kernel.getSymName() << ": chunks of " << loop.getStep();
      MergeLoopLowering(rewriter, loop, kernel.getLayoutAttr().getThreads())
          .run();
    }
  }
};
} // namespace
