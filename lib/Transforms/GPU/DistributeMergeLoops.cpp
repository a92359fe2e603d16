//===- DistributeMergeLoops.cpp - chunks and who merges them --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GPU/DistributeMergeLoops.h"
#include "lib/Transforms/GPU/LoadChunksAhead.h"
#include "lib/Transforms/MergeStates.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlafix;

namespace {

/// The base of the merge loop that became an `scf.for`.
constexpr llvm::StringLiteral kBaseAttr = "mlafix.base";

SmallVector<Value> flatten(ArrayRef<ValueRange> ranges) {
  SmallVector<Value> values;
  for (ValueRange range : ranges)
    llvm::append_range(values, range);
  return values;
}

struct DistributeMergeLoop : OpConversionPattern<MergeLoopOp> {
  DistributeMergeLoop(const TypeConverter &converter, MLIRContext *context,
                      const RowLayout &layout)
      : OpConversionPattern(converter, context), layout(layout) {}

  LogicalResult
  matchAndRewrite(MergeLoopOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    IndexBuilder x(rewriter, loc);
    Value step = x.constant(op.getStep());
    Value groups = layout.context.groups;
    Value stride = groups ? x.mul(step, x.toIndex(groups)) : step;
    SmallVector<Value> init = flatten(adaptor.getInit());
    auto loop = scf::ForOp::create(rewriter, loc, op.getLower(), op.getUpper(),
                                   stride, init);
    loop->setAttr(kBaseAttr, op.getBaseAttr());
    rewriter.setInsertionPointToStart(loop.getBody());
    Value first = loop.getInductionVar();
    if (groups)
      first = x.add(first, x.mul(step, x.toIndex(layout.context.group)));
    rewriter.inlineBlockBefore(&op.getBody().front(), loop.getBody(),
                               loop.getBody()->end(), first);

    SmallVector<SmallVector<Value>> results;
    auto next = loop.getResults().begin();
    for (ValueRange values : adaptor.getInit()) {
      results.emplace_back(next, next + values.size());
      next += values.size();
    }
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }

private:
  const RowLayout &layout;
};

/// The end of an iteration: a chunk is merged, or, in lane groups, the chunks
/// of all groups in their order.
struct DistributeChunk : OpConversionPattern<YieldOp> {
  DistributeChunk(const TypeConverter &converter, MLIRContext *context,
                  const RowLayout &layout)
      : OpConversionPattern(converter, context), layout(layout) {}

  LogicalResult
  matchAndRewrite(YieldOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
    auto baseAttr =
        loop ? loop->getAttrOfType<BaseAttr>(kBaseAttr) : BaseAttr();
    if (!baseAttr)
      return rewriter.notifyMatchFailure(op, "not of a merge loop");
    Location loc = op.getLoc();
    LogBase base = *baseAttr.getBase();
    rewriter.modifyOpInPlace(loop, [&] { loop->removeAttr(kBaseAttr); });
    SmallVector<Value> running(loop.getRegionIterArgs());
    SmallVector<Value> chunk = flatten(adaptor.getValues());
    auto merge = [&](OpBuilder &b, ValueRange state, ValueRange next) {
      return buildMerge(b, loc, {LoweredState(state), LoweredState(next)}, base)
          .values();
    };
    if (!layout.context.groups) {
      rewriter.replaceOpWithNewOp<scf::YieldOp>(
          op, merge(rewriter, running, chunk));
      return success();
    }
    IndexBuilder x(rewriter, loc);
    Value isShared =
        x.compare(arith::CmpIPredicate::ugt, layout.context.groups, x.i32(1));
    SmallVector<Value> buffers =
        publish(rewriter, loc, isShared, ValueRange(chunk));
    auto branch = scf::IfOp::create(rewriter, loc,
                                    ValueRange(running).getTypes(), isShared,
                                    /*withElseRegion=*/true);
    branch->setAttr(kChunkEndAttr, rewriter.getUnitAttr());
    {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(rewriter, loc, merge(rewriter, running, chunk));
      rewriter.setInsertionPointToStart(branch.thenBlock());
      NVVM::BarrierOp::create(rewriter, loc);
      scf::YieldOp::create(rewriter, loc,
                           collect(rewriter, loc, running, buffers,
                                   ValueRange(chunk).getTypes(), merge));
    }
    rewriter.replaceOpWithNewOp<scf::YieldOp>(op, branch.getResults());
    return success();
  }

private:
  using Merge =
      function_ref<SmallVector<Value>(OpBuilder &, ValueRange, ValueRange)>;

  /// Shared memory for a value of each thread of a block.
  Value allocShared(OpBuilder &b, Location loc, Type type) const {
    auto space = gpu::AddressSpaceAttr::get(b.getContext(),
                                            gpu::AddressSpace::Workgroup);
    SmallVector<int64_t> shape = {layout.context.layout.getThreads()};
    auto vector = dyn_cast<VectorType>(type);
    if (vector)
      shape.push_back(vector.getNumElements());
    return memref::AllocaOp::create(
        b, loc,
        MemRefType::get(shape, getElementTypeOrSelf(type), AffineMap(), space));
  }

  /// Of a pack in shared memory, all of whose buffers begin at multiples of 16
  /// bytes.
  static llvm::MaybeAlign alignmentOf(VectorType pack) {
    return llvm::MaybeAlign(std::min<int64_t>(
        16, pack.getNumElements() * pack.getElementTypeBitWidth() / 8));
  }

  /// Where shared memory holds the values of this thread's like in `group`.
  Value slotOf(IndexBuilder x, Value group) const {
    const RowContext &context = layout.context;
    return x.toIndex(x.add(x.mul(group, context.groupThreads), context.member));
  }

  /// Every thread leaves its chunk's values in shared memory, one buffer each,
  /// if groups share the loop. The barrier ahead is for the first group, which
  /// may be busy with the chunks before: the others have computed their next
  /// ones meanwhile.
  SmallVector<Value> publish(OpBuilder &b, Location loc, Value isShared,
                             ValueRange chunk) const {
    IndexBuilder x(b, loc);
    SmallVector<Value> buffers;
    for (Value value : chunk)
      buffers.push_back(allocShared(b, loc, value.getType()));
    Value own = slotOf(x, layout.context.group);
    auto branch = scf::IfOp::create(b, loc, isShared, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    NVVM::BarrierOp::create(b, loc);
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
  SmallVector<Value> read(OpBuilder &b, Location loc, ArrayRef<Value> buffers,
                          TypeRange types, Value slot) const {
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
  /// have. Groups are a power of two: two chunks an iteration, so that the
  /// weights of one are computed beside those of the other.
  SmallVector<Value> collect(OpBuilder &b, Location loc, ValueRange running,
                             ArrayRef<Value> buffers, TypeRange types,
                             Merge merge) const {
    constexpr int64_t kChunks = 2;
    IndexBuilder x(b, loc);
    const RowContext &context = layout.context;
    Value isFirst =
        x.compare(arith::CmpIPredicate::eq, context.group, x.i32(0));
    auto branch = scf::IfOp::create(b, loc, running.getTypes(), isFirst,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, loc, running);
    b.setInsertionPointToStart(branch.thenBlock());
    auto loop = scf::ForOp::create(b, loc, x.i32(0), context.groups,
                                   x.i32(kChunks), running);
    scf::YieldOp::create(b, loc, loop.getResults());
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<SmallVector<Value>> chunks;
    for (int64_t i = 0; i < kChunks; ++i)
      chunks.push_back(
          read(b, loc, buffers, types,
               slotOf(x, x.add(loop.getInductionVar(), x.i32(i)))));
    SmallVector<Value> merged(loop.getRegionIterArgs());
    for (ArrayRef<Value> chunk : chunks)
      merged = merge(b, merged, chunk);
    scf::YieldOp::create(b, loc, merged);
    return branch.getResults();
  }

  const RowLayout &layout;
};
} // namespace

void mlafix::populateMergeLoopPatterns(RewritePatternSet &patterns,
                                       const TypeConverter &converter,
                                       const RowLayout &layout) {
  patterns.add<DistributeMergeLoop, DistributeChunk>(
      converter, patterns.getContext(), layout);
}
