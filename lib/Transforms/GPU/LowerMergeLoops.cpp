//===- LowerMergeLoops.cpp - chunks and who merges them -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/RowProgram.h"
#include "lib/Transforms/GPU/ChunkEnd.h"
#include "lib/Transforms/GPU/SharedChunks.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/States/F32Builder.h"
#include "lib/Transforms/States/MergeStates.h"
#include "lib/Transforms/States/RunningMerge.h"
#include "lib/Transforms/Target.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-lower-merge-loops"

namespace mlafix {
#define GEN_PASS_DEF_LOWERMERGELOOPSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// Lanes of a row that a warp has, whichever row it begins with: a power of
/// two.
static int64_t countInWarp(LayoutAttr layout) {
  int64_t lanes = layout.getLanes();
  return std::min<int64_t>(lanes & -lanes, limits::warpThreads);
}

/// The largest number of `lanes` lanes side by side; `mask` has the row's.
static Value buildLargest(OpBuilder &b, Location loc, Value number,
                          int64_t lanes, Value mask) {
  for (int64_t distance = lanes / 2; distance; distance /= 2) {
    Value other = buildShuffleXor(b, loc, mask, number, distance);
    number = F32Builder(b, loc).max(number, other);
  }
  return number;
}

/// Makes an scf.for of a loop that finds the largest number: that of the chunks
/// at `offset`, `offset` + `stride`, ….
static scf::ForOp lowerToLargest(IRRewriter &b, MergeLoopOp op, Value stride,
                                 Value offset) {
  Operation *next = op->getNextNode();
  lowerToFor(b, op, stride, offset, [&](ValueRange running, ValueRange chunk) {
    return buildChunkMerge(b, op, running, chunk);
  });
  auto loop = cast<scf::ForOp>(next->getPrevNode());
  loop->setAttr(kLargestLseAttr, b.getUnitAttr());
  b.setInsertionPointAfter(loop);
  return loop;
}

/// True if lanes share the chunks of `op`: all of them load the only one.
static Value hasSeveralChunks(OpBuilder &b, MergeLoopOp op) {
  Location loc = op.getLoc();
  IndexBuilder x(b, loc);
  Value first = x.add(op.getLower(), x.constant(op.getStep()));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, op.getUpper(),
                               first);
}

/// The largest number of the lanes where `isLong` holds, else this lane's own.
static Value buildLargestIf(OpBuilder &b, Location loc, Value isLong,
                            Value number, int64_t lanes, Value mask) {
  auto branch = scf::IfOp::create(b, loc, number.getType(), isLong,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, number);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loc, buildLargest(b, loc, number, lanes, mask));
  return branch.getResult(0);
}

/// Finds the largest number for a row that no groups share: its lanes share the
/// chunks where they are a power of two, else each goes through all of them.
static void lowerToLargestOfRow(IRRewriter &b, RowOp row, MergeLoopOp op,
                                int64_t inWarp) {
  if (!row || !row.getMask())
    return lowerToFor(b, op);
  b.setInsertionPoint(op);
  Location loc = op.getLoc();
  IndexBuilder x(b, loc);
  Value isLong = hasSeveralChunks(b, op);
  Value together = x.select(isLong, x.constant(inWarp), x.constant(1));
  Value step = x.constant(op.getStep());
  Value lane = x.band(row.getLane(), x.sub(together, x.constant(1)));
  scf::ForOp loop =
      lowerToLargest(b, op, x.mul(step, together), x.mul(step, lane));
  Value own = loop.getResult(0);
  Value all = buildLargestIf(b, loc, isLong, own, inWarp, row.getMask());
  b.replaceUsesWithIf(own, all, [&](OpOperand &use) {
    return !all.getDefiningOp()->isAncestor(use.getOwner());
  });
}

/// Chunks that the first group adds in one iteration (Few rows of many splits,
/// docs/Experiments.md): a group for each of 32 states is one iteration.
constexpr int64_t kAddedChunks = 8;

namespace {
/// Makes an scf.for of a merge loop whose rows are packs, in a layout of lane
/// groups: group g computes the chunks g, g + groups, …; the groups leave
/// theirs in shared memory, and the first group merges them in the order of one
/// group alone. Of numbers, all groups find the largest.
class MergeLoopLowering {
public:
  MergeLoopLowering(IRRewriter &rewriter, KernelOp kernel, RowOp row,
                    MergeLoopOp op, int64_t collected)
      : b(rewriter), op(op), row(row), loc(op.getLoc()),
        layout(kernel.getLayoutAttr()), inWarp(countInWarp(layout)),
        collected(collected), group(row.getGroups()[0]),
        groups(row.getGroups()[1]), member(row.getGroups()[3]) {}

  void run();

private:
  void findLargest(Value stride, Value offset);
  Value tellGroups(Value number, Value tells);
  std::pair<Value, Value> allocLeast();
  Value toOrdered(Value number);
  Value fromOrdered(Value integer);
  Value flipNegative(Value bits);
  SmallVector<Value> buildChunkEnd(ValueRange running, ValueRange chunk);
  SmallVector<Value> merge(ValueRange running, ValueRange chunk) {
    return buildChunkMerge(b, op, running, chunk);
  }
  /// What groups do not know of each other's chunks: where these were weighed
  /// against the largest maximum, all have that one.
  ValueRange getExchanged(ValueRange chunk) {
    return chunk.drop_front(op.getToFirst() ? 1 : 0);
  }
  /// Lanes of a row that surely share a block, too, however few threads a
  /// group has in one.
  int64_t inAnyBlock() const {
    return std::min(inWarp, LayoutAttr::kLeastGrouped);
  }
  Value buildIsShared() {
    IndexBuilder x(b, loc);
    return x.compare(arith::CmpIPredicate::ugt, groups, x.i32(1));
  }
  void buildBarrierBehindFirst();
  using BuildValues = function_ref<SmallVector<Value>()>;
  scf::IfOp buildIf(Value condition, TypeRange types, BuildValues then,
                    BuildValues otherwise);
  SmallVector<Value> buildIfAll(Value byAll, TypeRange types, BuildValues then,
                                BuildValues otherwise);
  void publish(SharedChunks &shared, ValueRange running, ValueRange chunk,
               Value byAll);
  SmallVector<Value> collect(SharedChunks &shared, ValueRange running,
                             ValueRange chunk);
  SmallVector<Value> addByAll(SharedChunks &shared, ValueRange running);
  Value isFirstGroup() {
    IndexBuilder x(b, loc);
    return x.compare(arith::CmpIPredicate::eq, group, x.i32(0));
  }
  /// What the first group has of `build`; the others keep what they have.
  SmallVector<Value> buildIfFirst(ValueRange running, BuildValues build) {
    return buildIf(isFirstGroup(), running.getTypes(), build,
                   [&] { return SmallVector<Value>(running); })
        .getResults();
  }

  IRRewriter &b;
  MergeLoopOp op;
  RowOp row;
  Location loc;
  LayoutAttr layout;
  int64_t inWarp;    // lanes that surely share a row and a warp
  int64_t collected; // chunks that the first group merges in one iteration
  /// Of the row (mlafix.row).
  Value group, groups, member;
  Value isShared; // whether there are several groups
};
} // namespace

void MergeLoopLowering::run() {
  b.setInsertionPoint(op);
  isShared = buildIsShared();
  IndexBuilder x(b, loc);
  Value step = x.constant(op.getStep());
  Value stride = x.mul(step, x.toIndex(groups));
  Value offset = x.mul(step, x.toIndex(group));
  if (op.isOfNumbers())
    return findLargest(stride, offset);
  lowerToFor(b, op, stride, offset, [&](ValueRange running, ValueRange chunk) {
    return buildChunkEnd(running, chunk);
  });
}

/// The largest number of all chunks: the lanes that surely share a row share a
/// group's chunks.
void MergeLoopLowering::findLargest(Value stride, Value offset) {
  IndexBuilder x(b, loc);
  F32Builder f(b, loc);
  Value isLong = hasSeveralChunks(b, op);
  Value alone = x.select(isLong, x.i32(inWarp), x.i32(1));
  Value together = x.select(isShared, x.i32(inAnyBlock()), alone);
  Value lane = x.band(member, x.sub(together, x.i32(1)));
  offset = x.add(offset, x.mul(stride, x.toIndex(lane)));
  stride = x.mul(stride, x.toIndex(together));
  // Other groups do not know what a loop before this one has made.
  Value isFirst = isFirstGroup();
  Value init = op.getInit()[0];
  Value isNaN =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, init, init);
  init = f.select(isNaN, f.constant(std::numeric_limits<float>::quiet_NaN()),
                  init);
  op.getInitMutable()[0].set(f.select(isFirst, init, f.negInf()));
  Value tells =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                            x.add(op.getLower(), offset), op.getUpper());
  Value hasInit =
      x.band(isFirst, x.compare(arith::CmpIPredicate::eq, lane, x.i32(0)));
  tells = arith::OrIOp::create(b, loc, tells, hasInit);
  scf::ForOp loop = lowerToLargest(b, op, stride, offset);
  Value own = loop.getResult(0);
  auto branch = scf::IfOp::create(b, loc, own.getType(), isShared,
                                  /*withElseRegion=*/true);
  b.replaceAllUsesExcept(own, branch.getResult(0), branch);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loc, tellGroups(own, tells));
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc,
                       buildLargestIf(b, loc, isLong, own, inWarp, x.i32(-1)));
}

/// Every thread has the largest number of its row: those that `tells` holds for
/// tell it in shared memory, where the least number is until then.
Value MergeLoopLowering::tellGroups(Value number, Value tells) {
  auto [buffer, place] = allocLeast();
  auto branch = scf::IfOp::create(b, loc, tells, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    memref::AtomicRMWOp::create(b, loc, arith::AtomicRMWKind::maxs,
                                toOrdered(number), buffer, place);
  }
  buildBarrier(b, loc);
  return fromOrdered(memref::LoadOp::create(b, loc, buffer, place));
}

/// The least number in shared memory for the threads of each group that surely
/// share a row, and this thread's place in it; before the wait for the
/// preceding grid, if there is one.
std::pair<Value, Value> MergeLoopLowering::allocLeast() {
  OpBuilder::InsertionGuard guard(b);
  Operation *first = row;
  row->getParentOfType<KernelOp>().walk([&](Operation *nested) {
    if (isGridWait(nested))
      first = nested;
  });
  b.setInsertionPoint(first);
  IndexBuilder x(b, loc);
  Value place = x.toIndex(x.shr(member, x.i32(llvm::Log2_64(inAnyBlock()))));
  Value least = toOrdered(F32Builder(b, loc).negInf());
  Value buffer = allocShared(b, loc, {layout.getThreads() / inAnyBlock()},
                             least.getType());
  auto shared =
      scf::IfOp::create(b, loc, buildIsShared(), /*withElseRegion=*/false);
  b.setInsertionPointToStart(shared.thenBlock());
  auto branch =
      scf::IfOp::create(b, loc, isFirstGroup(), /*withElseRegion=*/false);
  buildBarrier(b, loc);
  b.setInsertionPointToStart(branch.thenBlock());
  memref::StoreOp::create(b, loc, least, buffer, place);
  return {buffer, place};
}

/// An integer that is the larger, the larger the number is. A NaN that is the
/// result of an operation is the largest.
Value MergeLoopLowering::toOrdered(Value number) {
  return flipNegative(arith::BitcastOp::create(b, loc, b.getI32Type(), number));
}

Value MergeLoopLowering::fromOrdered(Value integer) {
  return arith::BitcastOp::create(b, loc, b.getF32Type(),
                                  flipNegative(integer));
}

Value MergeLoopLowering::flipNegative(Value bits) {
  IndexBuilder x(b, loc);
  Value sign = arith::ShRSIOp::create(b, loc, bits, x.i32(31));
  Value magnitude = x.i32(std::numeric_limits<int32_t>::max());
  return arith::XOrIOp::create(b, loc, bits, x.band(sign, magnitude));
}

/// The end of an iteration: a chunk is merged, or the chunks of all groups in
/// their order.
SmallVector<Value> MergeLoopLowering::buildChunkEnd(ValueRange running,
                                                    ValueRange chunk) {
  SharedChunks shared(b, loc, row, layout, getExchanged(chunk).getTypes());
  Value byAll = op.getToFirst() ? shared.buildHasThreadForEach() : Value();
  publish(shared, running, chunk, byAll);
  auto mergeAll = [&] {
    buildBarrier(b, loc);
    return buildIfAll(
        byAll, running.getTypes(), [&] { return addByAll(shared, running); },
        [&] { return collect(shared, running, chunk); });
  };
  scf::IfOp end = buildIf(isShared, running.getTypes(), mergeAll,
                          [&] { return merge(running, chunk); });
  end->setAttr(kChunkEndAttr, b.getUnitAttr());
  if (op.getToFirst())
    end->setAttr(kLargestLseAttr, b.getUnitAttr());
  return end.getResults();
}

scf::IfOp MergeLoopLowering::buildIf(Value condition, TypeRange types,
                                     BuildValues then, BuildValues otherwise) {
  auto branch = scf::IfOp::create(b, loc, types, condition,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  auto build = [&](Block *block, BuildValues values) {
    block->clear(); // a branch without results comes with terminators
    b.setInsertionPointToStart(block);
    scf::YieldOp::create(b, loc, values());
  };
  build(branch.thenBlock(), then);
  build(branch.elseBlock(), otherwise);
  return branch;
}

/// Such a branch where `byAll`, which may be null, holds and groups have one
/// chunk each.
SmallVector<Value> MergeLoopLowering::buildIfAll(Value byAll, TypeRange types,
                                                 BuildValues then,
                                                 BuildValues otherwise) {
  if (!byAll)
    return otherwise();
  scf::IfOp branch = buildIf(byAll, types, then, otherwise);
  branch->setAttr(kOnlyChunkAttr, b.getUnitAttr());
  return branch.getResults();
}

/// A barrier in all iterations but the first.
void MergeLoopLowering::buildBarrierBehindFirst() {
  auto loop =
      b.getInsertionBlock()->getParentOp()->getParentOfType<scf::ForOp>();
  Value isLater =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                            loop.getInductionVar(), loop.getLowerBound());
  auto branch = scf::IfOp::create(b, loc, isLater, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  buildBarrier(b, loc);
}

/// Every thread leaves its chunk's values in shared memory, if groups share the
/// loop. The barrier ahead is for the first group, which may be busy with the
/// chunks before: the others have computed their next ones meanwhile.
void MergeLoopLowering::publish(SharedChunks &shared, ValueRange running,
                                ValueRange chunk, Value byAll) {
  auto branch = scf::IfOp::create(b, loc, isShared, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  buildBarrierBehindFirst();
  auto write = [&] {
    shared.write(getExchanged(chunk));
    return SmallVector<Value>();
  };
  // The first group has added its own already: its sums come first.
  auto writeToAdd = [&] {
    Value isFirst = isFirstGroup();
    SmallVector<Value> values;
    for (auto [sum, value] : llvm::zip_equal(merge(running, chunk), chunk))
      values.push_back(arith::SelectOp::create(b, loc, isFirst, sum, value));
    shared.writeToAdd(getExchanged(values));
    return SmallVector<Value>();
  };
  buildIfAll(byAll, TypeRange(), writeToAdd, write);
}

/// All threads add the chunks of all groups, the first group has the sums.
SmallVector<Value> MergeLoopLowering::addByAll(SharedChunks &shared,
                                               ValueRange running) {
  shared.add();
  buildBarrier(b, loc);
  return buildIfFirst(running, [&] {
    SmallVector<Value> sums(running.drop_back(getExchanged(running).size()));
    llvm::append_range(sums, shared.readSums());
    return sums;
  });
}

/// The first group merges the chunks of all groups, the others keep what they
/// have. An iteration merges several chunks, so that their weights are computed
/// side by side; chunks that are added wait for no weights, so that more of
/// them are read at once.
SmallVector<Value> MergeLoopLowering::collect(SharedChunks &shared,
                                              ValueRange running,
                                              ValueRange chunk) {
  return buildIfFirst(running, [&] {
    IndexBuilder x(b, loc);
    auto loop =
        scf::ForOp::create(b, loc, x.i32(0), groups, x.i32(collected), running);
    if (op.getToFirst())
      setUnrolling(loop, LLVM::LoopUnrollAttr::get(
                             b.getContext(), /*disable=*/{},
                             b.getI32IntegerAttr(kAddedChunks / collected), {},
                             {}, {}, {}, {}));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<SmallVector<Value>> chunks;
    for (int64_t i = 0; i < collected; ++i) {
      SmallVector<Value> next(chunk.drop_back(getExchanged(chunk).size()));
      llvm::append_range(next,
                         shared.read(x.add(loop.getInductionVar(), x.i32(i))));
      chunks.push_back(next);
    }
    SmallVector<Value> merged(loop.getRegionIterArgs());
    for (ArrayRef<Value> next : chunks)
      merged = merge(merged, next);
    scf::YieldOp::create(b, loc, merged);
    return SmallVector<Value>(loop.getResults());
  });
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
      bool isOfPacks =
          llvm::none_of(loop.getResultTypes(), isRowTile) && loop.getBase();
      if (loop.isOfNumbers() || isOfPacks)
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
      else if (loop.isOfNumbers())
        lowerToLargestOfRow(rewriter, loop->getParentOfType<RowOp>(), loop,
                            countInWarp(kernel.getLayoutAttr()));
      else
        lowerToFor(rewriter, loop);
    }
  }
};
} // namespace
