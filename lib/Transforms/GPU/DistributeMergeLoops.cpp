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
    auto branch = scf::IfOp::create(rewriter, loc,
                                    ValueRange(running).getTypes(), isShared,
                                    /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(rewriter, loc, merge(rewriter, running, chunk));
      rewriter.setInsertionPointToStart(branch.thenBlock());
      scf::YieldOp::create(rewriter, loc,
                           exchange(rewriter, loc, running, chunk, merge));
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
  static llvm::MaybeAlign alignmentOf(Value pack) {
    auto type = cast<VectorType>(pack.getType());
    return llvm::MaybeAlign(std::min<int64_t>(
        16, type.getNumElements() * type.getElementTypeBitWidth() / 8));
  }

  /// Every thread leaves its chunk's values in shared memory; the first group
  /// merges them, the others keep what they have.
  SmallVector<Value> exchange(OpBuilder &b, Location loc, ValueRange running,
                              ValueRange chunk, Merge merge) const {
    IndexBuilder x(b, loc);
    const RowContext &context = layout.context;
    auto slotOf = [&](Value group) {
      return x.toIndex(
          x.add(x.mul(group, context.groupThreads), context.member));
    };
    Value own = slotOf(context.group);
    SmallVector<Value> buffers;
    for (Value value : chunk) {
      buffers.push_back(allocShared(b, loc, value.getType()));
      if (isa<VectorType>(value.getType()))
        vector::StoreOp::create(b, loc, value, buffers.back(),
                                ValueRange{own, x.constant(0)},
                                /*nontemporal=*/false, alignmentOf(value));
      else
        memref::StoreOp::create(b, loc, value, buffers.back(), own);
    }
    NVVM::BarrierOp::create(b, loc);
    Value isFirst =
        x.compare(arith::CmpIPredicate::eq, context.group, x.i32(0));
    auto branch = scf::IfOp::create(b, loc, running.getTypes(), isFirst,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, loc, running);
    b.setInsertionPointToStart(branch.thenBlock());
    auto loop =
        scf::ForOp::create(b, loc, x.i32(0), context.groups, x.i32(1), running);
    scf::YieldOp::create(b, loc, loop.getResults());
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
    scf::YieldOp::create(b, loc, merge(b, loop.getRegionIterArgs(), theirs));
    b.setInsertionPointAfter(branch);
    NVVM::BarrierOp::create(b, loc); // the next chunks take the same places
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
