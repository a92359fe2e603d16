//===- LowerMergeLoops.cpp - chunks and who merges them -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/RowProgram.h"
#include "lib/Transforms/GPU/ChunkEnd.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/States/MergeStates.h"
#include "lib/Transforms/Target.h"
#include "lib/Transforms/ThreadOps.h"

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
static llvm::MaybeAlign alignmentOf(VectorType pack) {
  return llvm::MaybeAlign(std::min<int64_t>(
      16, pack.getNumElements() * pack.getElementTypeBitWidth() / 8));
}

namespace {
/// Makes an scf.for of a merge loop whose rows are packs, in a layout of lane
/// groups: group g computes the chunks g, g + groups, …; the groups leave
/// theirs in shared memory, and the first group merges them in the order of one
/// group alone.
class MergeLoopLowering {
public:
  MergeLoopLowering(IRRewriter &rewriter, KernelOp kernel, RowOp row,
                    MergeLoopOp op, int64_t collected)
      : b(rewriter), op(op), loc(op.getLoc()),
        base(*op.getBaseAttr().getBase()),
        threads(kernel.getLayoutAttr().getThreads()), collected(collected),
        group(row.getGroups()[0]), groups(row.getGroups()[1]),
        groupThreads(row.getGroups()[2]), member(row.getGroups()[3]) {}

  void run();

private:
  SmallVector<Value> buildChunkEnd(ValueRange running, ValueRange chunk);
  SmallVector<Value> merge(ValueRange state, ValueRange next) {
    return buildMerge(b, loc, {LoweredState(state), LoweredState(next)}, base)
        .values();
  }
  Value allocForThreads(Type type);
  SmallVector<Value> publish(Value isShared, ValueRange chunk);
  SmallVector<Value> read(ArrayRef<Value> buffers, TypeRange types, Value slot);
  SmallVector<Value> collect(ValueRange running, ArrayRef<Value> buffers,
                             TypeRange types);
  /// Where shared memory holds the values of this thread's like in `group`.
  Value slotOf(Value group) {
    IndexBuilder x(b, loc);
    return x.toIndex(x.add(x.mul(group, groupThreads), member));
  }

  IRRewriter &b;
  MergeLoopOp op;
  Location loc;
  LogBase base;
  int64_t threads;   // of a block, at most
  int64_t collected; // chunks that the first group merges in one iteration
  /// Of the row (mlafix.row).
  Value group, groups, groupThreads, member;
};
} // namespace

void MergeLoopLowering::run() {
  b.setInsertionPoint(op);
  IndexBuilder x(b, loc);
  Value step = x.constant(op.getStep());
  Value stride = x.mul(step, x.toIndex(groups));
  Value offset = x.mul(step, x.toIndex(group));
  lowerToFor(b, op, stride, offset, [&](ValueRange running, ValueRange chunk) {
    return buildChunkEnd(running, chunk);
  });
}

/// The end of an iteration: a chunk is merged, or the chunks of all groups in
/// their order.
SmallVector<Value> MergeLoopLowering::buildChunkEnd(ValueRange running,
                                                    ValueRange chunk) {
  IndexBuilder x(b, loc);
  Value isShared = x.compare(arith::CmpIPredicate::ugt, groups, x.i32(1));
  SmallVector<Value> buffers = publish(isShared, chunk);
  auto branch = scf::IfOp::create(b, loc, running.getTypes(), isShared,
                                  /*withElseRegion=*/true);
  branch->setAttr(kChunkEndAttr, b.getUnitAttr());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, merge(running, chunk));
  b.setInsertionPointToStart(branch.thenBlock());
  buildBarrier(b, loc);
  scf::YieldOp::create(b, loc, collect(running, buffers, chunk.getTypes()));
  return branch.getResults();
}

/// Shared memory for a value of each thread of a block.
Value MergeLoopLowering::allocForThreads(Type type) {
  SmallVector<int64_t> shape = {threads};
  if (auto vector = dyn_cast<VectorType>(type))
    shape.push_back(vector.getNumElements());
  return allocShared(b, loc, shape, getElementTypeOrSelf(type));
}

/// Every thread leaves its chunk's values in shared memory, one buffer each,
/// if groups share the loop. The barrier ahead is for the first group, which
/// may be busy with the chunks before: the others have computed their next
/// ones meanwhile.
SmallVector<Value> MergeLoopLowering::publish(Value isShared,
                                              ValueRange chunk) {
  IndexBuilder x(b, loc);
  SmallVector<Value> buffers;
  for (Value value : chunk)
    buffers.push_back(allocForThreads(value.getType()));
  Value own = slotOf(group);
  auto branch = scf::IfOp::create(b, loc, isShared, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  buildBarrier(b, loc);
  for (auto [buffer, value] : llvm::zip(buffers, chunk))
    if (auto type = dyn_cast<VectorType>(value.getType()))
      vector::StoreOp::create(b, loc, value, buffer,
                              ValueRange{own, x.constant(0)},
                              /*nontemporal=*/false, alignmentOf(type));
    else
      memref::StoreOp::create(b, loc, value, buffer, own);
  return buffers;
}

/// The chunk at `slot`.
SmallVector<Value> MergeLoopLowering::read(ArrayRef<Value> buffers,
                                           TypeRange types, Value slot) {
  IndexBuilder x(b, loc);
  SmallVector<Value> chunk;
  for (auto [buffer, type] : llvm::zip(buffers, types))
    if (auto pack = dyn_cast<VectorType>(type))
      chunk.push_back(vector::LoadOp::create(
          b, loc, pack, buffer, ValueRange{slot, x.constant(0)},
          /*nontemporal=*/false, alignmentOf(pack)));
    else
      chunk.push_back(memref::LoadOp::create(b, loc, buffer, slot));
  return chunk;
}

/// The first group merges the chunks of all groups, the others keep what they
/// have. An iteration merges several chunks, so that their weights are computed
/// side by side.
SmallVector<Value> MergeLoopLowering::collect(ValueRange running,
                                              ArrayRef<Value> buffers,
                                              TypeRange types) {
  IndexBuilder x(b, loc);
  Value isFirst = x.compare(arith::CmpIPredicate::eq, group, x.i32(0));
  auto branch = scf::IfOp::create(b, loc, running.getTypes(), isFirst,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, running);
  b.setInsertionPointToStart(branch.thenBlock());
  auto loop =
      scf::ForOp::create(b, loc, x.i32(0), groups, x.i32(collected), running);
  scf::YieldOp::create(b, loc, loop.getResults());
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<SmallVector<Value>> chunks;
  for (int64_t i = 0; i < collected; ++i)
    chunks.push_back(
        read(buffers, types, slotOf(x.add(loop.getInductionVar(), x.i32(i)))));
  SmallVector<Value> merged(loop.getRegionIterArgs());
  for (ArrayRef<Value> chunk : chunks)
    merged = merge(merged, chunk);
  scf::YieldOp::create(b, loc, merged);
  return branch.getResults();
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
    // The groups that share a loop are a power of two, two at least.
    int64_t collected = getMachine(kernel).collectedChunks;
    if (!loops.empty() && collected != 1 && collected != 2) {
      kernel.emitError() << "expected collectedChunks to be 1 or 2, got "
                         << collected;
      return signalPassFailure();
    }
    IRRewriter rewriter(&getContext());
    for (MergeLoopOp loop : loops) {
      LDBG() << kernel.getSymName() << ": chunks of " << loop.getStep();
      if (RowOp row = getSharedRow(loop))
        MergeLoopLowering(rewriter, kernel, row, loop, collected).run();
      else
        lowerToFor(rewriter, loop);
    }
  }
};
} // namespace
