//===- DistributeRows.cpp - row tiles become packs -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Distribute.h"
#include "lib/Transforms/GPU/DistributeMergeLoops.h"
#include "lib/Transforms/GPU/LoadChunksAhead.h"
#include "lib/Transforms/RowAccess.h"
#include "lib/Transforms/RowReduce.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace mlafix;

namespace {

template <typename OpTy> struct RowPattern : OpConversionPattern<OpTy> {
  RowPattern(const TypeConverter &converter, MLIRContext *context,
             const RowLayout &layout)
      : OpConversionPattern<OpTy>(converter, context), layout(layout) {}
  const RowLayout &layout;
};

struct DistributeLoad : RowPattern<LoadOp> {
  using RowPattern::RowPattern;
  LogicalResult
  matchAndRewrite(LoadOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value source = op.getSource();
    Type element = cast<MemRefType>(source.getType()).getElementType();
    // What is left out reads as zero; `else` is for where the kernel's own
    // predicate is false.
    Value predicate = accessPredicate(rewriter, loc, op.getPredicate(), source);
    Value other = op.getOther(), chosen = op.getPredicate();

    if (!isRowTile(op.getType())) {
      Value value = readMemory(rewriter, loc, layout, predicate, element,
                               source, op.getIndices());
      value = widen(rewriter, op, value);
      if (other)
        value = arith::SelectOp::create(rewriter, loc, chosen, value, other);
      rewriter.replaceOp(op, value);
      return success();
    }

    Type tile = op.getType();
    SmallVector<Value> packs;
    for (int64_t p = 0, n = layout.packsOf(tile); p < n; ++p) {
      SmallVector<Value> indices(op.getIndices());
      indices.push_back(layout.packStart(rewriter, loc, tile, p));
      Value exists = both(rewriter, loc, predicate,
                          layout.packExists(rewriter, loc, tile, p));
      Value value = readMemory(rewriter, loc, layout, exists,
                               layout.packType(tile, element), source, indices);
      packs.push_back(widen(rewriter, op, value));
      if (other) {
        Value splat = vector::BroadcastOp::create(
            rewriter, loc, packs.back().getType(), other);
        packs.back() =
            arith::SelectOp::create(rewriter, loc, chosen, packs.back(), splat);
      }
    }
    rewriter.replaceOpWithMultiple(op, {packs});
    return success();
  }
};

struct DistributeStore : RowPattern<StoreOp> {
  using RowPattern::RowPattern;
  LogicalResult
  matchAndRewrite(StoreOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value target = op.getTarget();
    Type element = cast<MemRefType>(target.getType()).getElementType();
    Value predicate = accessPredicate(rewriter, loc, op.getPredicate(), target);

    if (!isRowTile(op.getValue().getType())) {
      Value value = narrow(rewriter, loc, adaptor.getValue().front(), element);
      if (layout.context.lane) {
        IndexBuilder x(rewriter, loc);
        Value isFirst = x.compare(arith::CmpIPredicate::eq, layout.context.lane,
                                  x.constant(0));
        predicate = both(rewriter, loc, predicate, isFirst);
      }
      writeIf(rewriter, loc, predicate, [&](OpBuilder &b) {
        memref::StoreOp::create(b, loc, value, target, op.getIndices());
      });
      rewriter.eraseOp(op);
      return success();
    }

    Type tile = op.getValue().getType();
    for (auto [p, pack] : llvm::enumerate(adaptor.getValue())) {
      Value value = narrow(rewriter, loc, pack, element);
      SmallVector<Value> indices(op.getIndices());
      indices.push_back(layout.packStart(rewriter, loc, tile, p));
      Value exists = both(rewriter, loc, predicate,
                          layout.packExists(rewriter, loc, tile, p));
      writeIf(rewriter, loc, exists, [&](OpBuilder &b) {
        vector::StoreOp::create(b, loc, value, target, indices,
                                layout.isStreamed(target),
                                llvm::MaybeAlign(layout.alignmentOf(target)));
      });
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct DistributeSplat : RowPattern<SplatOp> {
  using RowPattern::RowPattern;
  LogicalResult
  matchAndRewrite(SplatOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value scalar = adaptor.getScalar().front();
    Value pack = vector::BroadcastOp::create(
        rewriter, op.getLoc(), layout.packType(op.getType()), scalar);
    rewriter.replaceOpWithMultiple(
        op, {SmallVector<Value>(layout.packsOf(op.getType()), pack)});
    return success();
  }
};

/// A constant row whose elements are all one value.
struct DistributeConstant : RowPattern<arith::ConstantOp> {
  using RowPattern::RowPattern;
  LogicalResult
  matchAndRewrite(arith::ConstantOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value pack = splatPack(rewriter, layout, op);
    if (!pack)
      return rewriter.notifyMatchFailure(op, "not a row of one value");
    rewriter.replaceOpWithMultiple(
        op, {SmallVector<Value>(layout.packsOf(op.getType()), pack)});
    return success();
  }
};

/// Elementwise ops apply to each pack.
struct DistributeElementwise : ConversionPattern {
  DistributeElementwise(const TypeConverter &converter, MLIRContext *context,
                        const RowLayout &layout)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/1,
                          context),
        layout(layout) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (!OpTrait::hasElementwiseMappableTraits(op) ||
        op->getNumResults() != 1 || !isRowTile(op->getResult(0).getType()))
      return rewriter.notifyMatchFailure(op, "not an elementwise op on a row");
    SmallVector<Value> packs;
    for (int64_t p = 0, n = layout.packsOf(op->getResult(0).getType()); p < n;
         ++p) {
      SmallVector<Value> mine;
      for (ValueRange values : operands)
        mine.push_back(values.size() == 1 ? values.front() : values[p]);
      packs.push_back(applyToPack(rewriter, layout, op, mine));
    }
    rewriter.replaceOpWithMultiple(op, {packs});
    return success();
  }

  const RowLayout &layout;
};

struct DistributeReduce : RowPattern<ReduceOp> {
  using RowPattern::RowPattern;
  LogicalResult
  matchAndRewrite(ReduceOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    SmallVector<Value> partials;
    for (auto [p, pack] : llvm::enumerate(adaptor.getSource()))
      partials.push_back(reducePack(
          rewriter, layout, op, pack,
          layout.packExists(rewriter, loc, op.getSource().getType(), p)));
    reduceAcrossLanes(rewriter, layout, op, partials);
    rewriter.replaceOp(op, reduceTree(rewriter, loc, op.getKind(), partials));
    return success();
  }
};
} // namespace

/// What the patterns above cannot do gets an error that says so, rather than a
/// failed conversion.
static LogicalResult checkRowOps(KernelOp kernel) {
  WalkResult walk = kernel.walk([&](Operation *op) {
    auto isTile = [](Type type) { return isRowTile(type); };
    if (llvm::none_of(op->getOperandTypes(), isTile) &&
        llvm::none_of(op->getResultTypes(), isTile))
      return WalkResult::advance();
    if (isa<LoadOp, StoreOp, SplatOp, ReduceOp, MergeLoopOp, YieldOp,
            scf::ForOp, scf::IfOp, scf::YieldOp, scf::WhileOp,
            scf::ConditionOp>(op))
      return WalkResult::advance();
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      if (isa<SplatElementsAttr>(constant.getValue()))
        return WalkResult::advance();
      op->emitError() << "expected a constant row whose elements are all one "
                         "value, got different elements";
      return WalkResult::interrupt();
    }
    if (OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1) {
      // An index has no size in memory, and so no place in a pack.
      if (!getElementTypeOrSelf(op->getResult(0).getType()).isIndex())
        return WalkResult::advance();
      op->emitError()
          << "expected rows of f32, i1, i8, i32 or i64, got a row of index";
      return WalkResult::interrupt();
    }
    op->emitError()
        << "expected an elementwise op with one result, a load, a store, a "
           "reduction, a splat or control flow on a row, got '"
        << op->getName() << "'";
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

/// Rows that are not walked in loops become one value a pack.
static LogicalResult checkUnrolled(KernelOp kernel, const RowLayout &layout) {
  constexpr int64_t kMaxPacks = 1 << 15;
  int64_t packs = 0;
  Operation *first = nullptr;
  kernel.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (isRowTile(type)) {
        packs += layout.packsOf(type);
        first = first ? first : op;
      }
  });
  if (packs <= kMaxPacks)
    return success();
  return first->emitError()
         << "expected rows of at most " << kMaxPacks
         << " packs, all together, where scf.while carries some, got " << packs;
}

LogicalResult mlafix::distributeRows(KernelOp kernel,
                                     const RowContext &context) {
  if (failed(checkRowOps(kernel)))
    return failure();
  distributeRowsInLoops(kernel, context);
  // What is left: scalars, and rows that were not walked in loops.
  if (failed(checkUnrolled(kernel, {context, kernel.getGuardsAttr()})))
    return failure();
  MLIRContext *ctx = kernel.getContext();
  RowLayout layout{context, kernel.getGuardsAttr()};
  TypeConverter converter;
  converter.addConversion([](Type type) { return type; });
  converter.addConversion(
      [&](RankedTensorType type,
          SmallVectorImpl<Type> &results) -> std::optional<LogicalResult> {
        if (!isRowTile(type))
          return std::nullopt;
        results.append(layout.packsOf(type), layout.packType(type));
        return success();
      });

  RewritePatternSet patterns(ctx);
  patterns.add<DistributeLoad, DistributeStore, DistributeSplat,
               DistributeConstant, DistributeElementwise, DistributeReduce>(
      converter, ctx, layout);
  populateMergeLoopPatterns(patterns, converter, layout);
  ConversionTarget target(*ctx);
  target.markUnknownOpDynamicallyLegal(
      [&](Operation *op) { return converter.isLegal(op); });
  scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                       target);
  target
      .addIllegalOp<LoadOp, StoreOp, SplatOp, ReduceOp, MergeLoopOp, YieldOp>();
  target.addLegalOp<KernelOp, ReturnOp, PresentOp, SameTensorOp>();
  if (failed(applyPartialConversion(kernel, target, std::move(patterns))))
    return failure();
  loadChunksAhead(kernel);
  return success();
}
