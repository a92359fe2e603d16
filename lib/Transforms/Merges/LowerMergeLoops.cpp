//===- LowerMergeLoops.cpp - lower merge loops to loops over chunks -------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/MlafixThread.h"
#include "dialect/Plan.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/Merges/LoadChunksAhead.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/States/F32Builder.h"
#include "lib/Transforms/States/MergeStates.h"
#include "lib/Transforms/States/RunningMerge.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
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

/// Returns the number of adjacent lanes, a power of two, that are in one warp
/// in every row.
static int64_t countInWarp(LayoutAttr layout) {
  int64_t lanes = layout.getLanes();
  return std::min<int64_t>(lanes & -lanes, limits::warpThreads);
}

/// Builds the maximum of `number` over `lanes` adjacent lanes. `mask` contains
/// all lanes of the row that are in this warp.
static Value buildLargest(OpBuilder &b, Location loc, Value number,
                          int64_t lanes, Value mask) {
  for (int64_t distance = lanes / 2; distance; distance /= 2) {
    Value other = buildShuffleXor(b, loc, mask, number, distance);
    number = F32Builder(b, loc).max(number, other);
  }
  return number;
}

/// Lowers a merge loop that computes a maximum (isOfNumbers) to an scf.for.
/// Each thread processes the chunks at its `offset`, `offset` + `stride`, ….
static scf::ForOp lowerToLargest(IRRewriter &b, MergeLoopOp op, Value stride,
                                 Value offset) {
  Operation *next = op->getNextNode();
  lowerToFor(b, op, stride, offset, [&](ValueRange running, ValueRange chunk) {
    return buildChunkMerge(b, op, running, chunk);
  });
  auto loop = cast<scf::ForOp>(next->getPrevNode());
  b.setInsertionPointAfter(loop);
  return loop;
}

/// Builds an i1 that is true if `op` has several chunks, which lanes can share.
/// A single chunk is loaded by all lanes.
static Value hasSeveralChunks(OpBuilder &b, MergeLoopOp op) {
  Location loc = op.getLoc();
  IndexBuilder x(b, loc);
  Value first = x.add(op.getLower(), x.constant(op.getStep()));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, op.getUpper(),
                               first);
}

/// Builds the maximum of `number` over `lanes` adjacent lanes where the i1
/// `isLong` is true. Elsewhere the result is this lane's `number`.
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

/// Lowers a merge loop that computes a maximum in a row without lane groups. If
/// there are several chunks, every `inWarp` adjacent lanes share them. If lanes
/// never synchronise (the row has no mask), each lane processes all chunks.
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

//===----------------------------------------------------------------------===//
// Chunks in shared memory
//===----------------------------------------------------------------------===//

/// Returns the number of elements of a pack, or 1 for a number.
static int64_t countElements(Type type) {
  auto pack = dyn_cast<VectorType>(type);
  return pack ? pack.getNumElements() : 1;
}

/// Returns the alignment of a pack in shared memory: its size in bytes, but at
/// most 16.
static llvm::MaybeAlign alignmentOf(VectorType pack) {
  return llvm::MaybeAlign(std::min<int64_t>(
      16, pack.getNumElements() * pack.getElementTypeBitWidth() / 8));
}

namespace {
/// Shared memory for the chunks of lane groups. Each thread writes its f32
/// packs and numbers of its group's chunk. One group reads the chunks of all
/// groups.
class SharedChunks {
public:
  /// Allocates memory for values of `types` of every thread.
  SharedChunks(OpBuilder &b, Location loc, RowOp row, LayoutAttr layout,
               TypeRange types);

  /// Writes this thread's values.
  void write(ValueRange values);
  /// Reads the values of one thread of `group` (i32): the thread that has the
  /// same number in `group` as this thread has in its group. A barrier must
  /// separate the write of that thread from this read.
  SmallVector<Value> read(Value group);

private:
  Value indexOf(Value group, int64_t before, int64_t elements);

  OpBuilder &b;
  Location loc;
  Value group, groupThreads, member; // i32, copied from `row`
  // The largest number of threads per block.
  int64_t threads;
  SmallVector<Type> types;
  Value buffer;
};
} // namespace

SharedChunks::SharedChunks(OpBuilder &b, Location loc, RowOp row,
                           LayoutAttr layout, TypeRange types)
    : b(b), loc(loc), group(row.getGroups()[0]),
      groupThreads(row.getGroups()[2]), member(row.getGroups()[3]),
      threads(layout.getThreads()), types(types) {
  int64_t elements = 0; // elements per thread
  for (Type type : types) {
    assert(getElementTypeOrSelf(type).isF32() && "a state is of f32");
    elements += countElements(type);
  }
  buffer = allocShared(b, loc, {threads * elements}, b.getF32Type());
}

/// Returns the index in the buffer of a value of one thread: the thread of
/// `group` that has the same number in its group as this thread. The value has
/// `elements` elements, and `before` elements precede it in the list of values.
/// The buffer holds the first value of all threads, then the second value of
/// all threads, and so on.
Value SharedChunks::indexOf(Value group, int64_t before, int64_t elements) {
  IndexBuilder x(b, loc);
  Value thread = x.toIndex(x.add(x.mul(group, groupThreads), member));
  return x.add(x.constant(before * threads),
               x.mul(thread, x.constant(elements)));
}

void SharedChunks::write(ValueRange values) {
  int64_t before = 0;
  for (Value value : values) {
    int64_t count = countElements(value.getType());
    Value at = indexOf(group, before, count);
    if (auto type = dyn_cast<VectorType>(value.getType()))
      vector::StoreOp::create(b, loc, value, buffer, at,
                              /*nontemporal=*/false, alignmentOf(type));
    else
      memref::StoreOp::create(b, loc, value, buffer, at);
    before += count;
  }
}

SmallVector<Value> SharedChunks::read(Value group) {
  int64_t before = 0;
  SmallVector<Value> values;
  for (Type type : types) {
    int64_t count = countElements(type);
    Value at = indexOf(group, before, count);
    if (auto pack = dyn_cast<VectorType>(type))
      values.push_back(vector::LoadOp::create(b, loc, pack, buffer, at,
                                              /*nontemporal=*/false,
                                              alignmentOf(pack)));
    else
      values.push_back(memref::LoadOp::create(b, loc, buffer, at));
    before += count;
  }
  return values;
}

//===----------------------------------------------------------------------===//
// Merge loops of lane groups
//===----------------------------------------------------------------------===//

namespace {
/// Lowers a merge loop on packs, in a layout of lane groups, to an scf.for.
/// Group g computes the chunks g, g + groups, …. The groups store their chunks
/// in shared memory. The first group merges these chunks in the order in which
/// a single group would. If the loop computes a maximum instead, every group
/// obtains the maximum.
class MergeLoopLowering {
public:
  MergeLoopLowering(IRRewriter &rewriter, KernelOp kernel, RowOp row,
                    MergeLoopOp op)
      : b(rewriter), op(op), row(row), loc(op.getLoc()),
        layout(kernel.getLayoutAttr()), inWarp(countInWarp(layout)),
        collected(getPlanned(kernel, PlanField::CollectedChunks)),
        added(getPlanned(kernel, PlanField::AddedChunks)),
        group(row.getGroups()[0]), groups(row.getGroups()[1]),
        member(row.getGroups()[3]) {}

  /// Lowers the loop. If it merges states, returns the branch at the end of the
  /// new loop's body, else the loop that computes the maximum.
  ChunkLoop run();

private:
  scf::ForOp findLargest(Value stride, Value offset);
  Value tellGroups(Value number, Value tells);
  std::pair<Value, Value> allocLeast();
  Value toOrdered(Value number);
  Value fromOrdered(Value integer);
  Value flipNegative(Value bits);
  scf::IfOp buildChunkEnd(ValueRange running, ValueRange chunk);
  SmallVector<Value> merge(ValueRange running, ValueRange chunk) {
    return buildChunkMerge(b, op, running, chunk);
  }
  /// Returns the values of a chunk that groups exchange. If chunks are weighed
  /// against the largest maximum, the first value of `chunk` is this maximum.
  /// It is not exchanged, since all groups know it.
  ValueRange getExchanged(ValueRange chunk) {
    return chunk.drop_front(op.getToFirst() ? 1 : 0);
  }
  /// Returns a number of adjacent lanes that are in one block and one warp,
  /// however many threads the launch gives a group.
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
  void publish(SharedChunks &shared, ValueRange chunk);
  SmallVector<Value> collect(SharedChunks &shared, ValueRange running,
                             ValueRange chunk);
  Value isFirstGroup() {
    IndexBuilder x(b, loc);
    return x.compare(arith::CmpIPredicate::eq, group, x.i32(0));
  }
  /// Builds a branch that executes `build` in the first group. The other groups
  /// keep `running`.
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
  int64_t inWarp;    // adjacent lanes known to share a row and a warp
  int64_t collected; // chunks that the first group merges per iteration
  int64_t added;     // chunks that it adds per iteration, if none has a weight
  /// This thread's group, the number of groups, and this thread's number in its
  /// group, all i32, from mlafix_thread.row.
  Value group, groups, member;
  Value isShared; // i1: true if there are several groups
};
} // namespace

ChunkLoop MergeLoopLowering::run() {
  b.setInsertionPoint(op);
  isShared = buildIsShared();
  IndexBuilder x(b, loc);
  Value step = x.constant(op.getStep());
  Value stride = x.mul(step, x.toIndex(groups));
  Value offset = x.mul(step, x.toIndex(group));
  if (op.isOfNumbers())
    return {scf::IfOp(), findLargest(stride, offset)};
  scf::IfOp end;
  lowerToFor(b, op, stride, offset, [&](ValueRange running, ValueRange chunk) {
    end = buildChunkEnd(running, chunk);
    return SmallVector<Value>(end.getResults());
  });
  return {end, scf::ForOp()};
}

/// Lowers a loop that computes a maximum over all chunks. Lanes that are known
/// to share a row also share the chunks of their lane group.
scf::ForOp MergeLoopLowering::findLargest(Value stride, Value offset) {
  IndexBuilder x(b, loc);
  F32Builder f(b, loc);
  Value isLong = hasSeveralChunks(b, op);
  Value alone = x.select(isLong, x.i32(inWarp), x.i32(1));
  Value together = x.select(isShared, x.i32(inAnyBlock()), alone);
  Value lane = x.band(member, x.sub(together, x.i32(1)));
  offset = x.add(offset, x.mul(stride, x.toIndex(lane)));
  stride = x.mul(stride, x.toIndex(together));
  // The initial value may be the result of an earlier loop, which only the
  // first group knows. So the other groups start with -inf.
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
  return loop;
}

/// Gives every thread the maximum of `number` over its row. Threads for which
/// the i1 `tells` is true combine their numbers in shared memory, which is
/// initialised with -inf.
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

/// Allocates shared memory with one element per inAnyBlock() adjacent threads,
/// which share a row, and stores -inf to it. Returns the memory and the index
/// of this thread's element. The code precedes the wait for the preceding grid,
/// if there is one.
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

/// Maps an f32 to an i32, such that the integers have the order of the floats.
/// The NaN that arithmetic yields (0x7fffffff) becomes the largest integer.
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

/// Builds the end of an iteration. It merges this group's chunk or, if there
/// are several groups, the chunks of all groups in order.
scf::IfOp MergeLoopLowering::buildChunkEnd(ValueRange running,
                                           ValueRange chunk) {
  SharedChunks shared(b, loc, row, layout, getExchanged(chunk).getTypes());
  publish(shared, chunk);
  auto mergeAll = [&] {
    buildBarrier(b, loc);
    return collect(shared, running, chunk);
  };
  return buildIf(isShared, running.getTypes(), mergeAll,
                 [&] { return merge(running, chunk); });
}

scf::IfOp MergeLoopLowering::buildIf(Value condition, TypeRange types,
                                     BuildValues then, BuildValues otherwise) {
  auto branch = scf::IfOp::create(b, loc, types, condition,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  auto build = [&](Block *block, BuildValues values) {
    block->clear(); // A branch without results is created with terminators.
    b.setInsertionPointToStart(block);
    scf::YieldOp::create(b, loc, values());
  };
  build(branch.thenBlock(), then);
  build(branch.elseBlock(), otherwise);
  return branch;
}

/// Builds a barrier that executes in all iterations but the first.
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

/// Stores this thread's part of its group's chunk to shared memory if groups
/// share the loop. A barrier comes first, because the first group may still
/// read the previous chunks when other groups have computed their next chunks.
void MergeLoopLowering::publish(SharedChunks &shared, ValueRange chunk) {
  auto branch = scf::IfOp::create(b, loc, isShared, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  buildBarrierBehindFirst();
  shared.write(getExchanged(chunk));
}

/// Lets the first group merge the chunks of all groups. The other groups keep
/// `running`. An iteration merges several chunks, so that the computations of
/// their weights overlap. Chunks that are only added need no weights, so an
/// iteration reads more of them.
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
                             b.getI32IntegerAttr(added / collected), {}, {}, {},
                             {}, {}));
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
    WalkResult walk = kernel.walk([&](MergeLoopOp loop) -> WalkResult {
      loops.push_back(loop);
      bool isOfPacks =
          llvm::none_of(loop.getResultTypes(), isRowTile) && loop.getBase();
      if (loop.isOfNumbers() || isOfPacks)
        return WalkResult::advance();
      return loop.emitError() << "expected a state of packs, got one that "
                                 "mlafix-rows-to-packs has not seen";
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    for (ChunkLoop chunks : lower(loops))
      loadChunksAhead(kernel, chunks);
  }

private:
  SmallVector<ChunkLoop> lower(ArrayRef<MergeLoopOp> loops);
};
} // namespace

/// Lowers `loops`. Returns the loops whose chunks are shared by lane groups.
SmallVector<ChunkLoop> LowerMergeLoopsPass::lower(ArrayRef<MergeLoopOp> loops) {
  KernelOp kernel = getOperation();
  IRRewriter rewriter(&getContext());
  SmallVector<ChunkLoop> shared;
  SmallVector<scf::ForOp> ofNumbers;
  for (MergeLoopOp loop : loops) {
    LDBG() << kernel.getSymName() << ": chunks of " << loop.getStep();
    RowOp row = getSharedRow(loop);
    if (!row && loop.isOfNumbers()) {
      lowerToLargestOfRow(rewriter, loop->getParentOfType<RowOp>(), loop,
                          countInWarp(kernel.getLayoutAttr()));
    } else if (!row) {
      lowerToFor(rewriter, loop);
    } else {
      Block *block = loop->getBlock();
      bool isToFirst = loop.getToFirst();
      ChunkLoop chunks = MergeLoopLowering(rewriter, kernel, row, loop).run();
      if (!chunks.end) {
        ofNumbers.push_back(chunks.largest);
        continue;
      }
      // Chunks of `loop` are weighed against the result of the preceding loop.
      if (isToFirst && !ofNumbers.empty() &&
          ofNumbers.back()->getBlock() == block)
        chunks.largest = ofNumbers.pop_back_val();
      shared.push_back(chunks);
    }
  }
  return shared;
}
