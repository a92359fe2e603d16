//===- DistributeRows.cpp - row tiles become packs -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Distribute.h"
#include "lib/Transforms/DistributeMergeLoops.h"
#include "lib/Transforms/RowAccess.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
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

    int64_t size = getTileDim(op.getType()).getSize();
    SmallVector<Value> packs;
    for (int64_t p = 0, n = layout.packsOf(op.getType()); p < n; ++p) {
      SmallVector<Value> indices(op.getIndices());
      indices.push_back(layout.packStart(rewriter, loc, p));
      Value exists = both(rewriter, loc, predicate,
                          layout.packExists(rewriter, loc, p, size));
      Value value = readMemory(rewriter, loc, layout, exists,
                               layout.packType(element), source, indices);
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

    int64_t size = getTileDim(op.getValue().getType()).getSize();
    for (auto [p, pack] : llvm::enumerate(adaptor.getValue())) {
      Value value = narrow(rewriter, loc, pack, element);
      SmallVector<Value> indices(op.getIndices());
      indices.push_back(layout.packStart(rewriter, loc, p));
      Value exists = both(rewriter, loc, predicate,
                          layout.packExists(rewriter, loc, p, size));
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
        rewriter, op.getLoc(), layout.packType(scalar.getType()), scalar);
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

/// Reduces along the bits of the element's index, lowest first: within a pack,
/// across lanes, across warps, across packs. The tree is the same for every
/// layout (N9).
struct DistributeReduce : RowPattern<ReduceOp> {
  using RowPattern::RowPattern;

  LogicalResult
  matchAndRewrite(ReduceOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type element = getElementTypeOrSelf(op.getSource().getType());
    int64_t size = getTileDim(op.getSource().getType()).getSize();
    Value neutral = arith::ConstantOp::create(
        rewriter, loc, cast<TypedAttr>(neutralOf(op.getKind(), element)));
    SmallVector<Value> partials;
    for (auto [p, pack] : llvm::enumerate(adaptor.getSource())) {
      SmallVector<Value> elements;
      for (int64_t i = 0; i < layout.pack(); ++i)
        elements.push_back(vector::ExtractOp::create(rewriter, loc, pack, i));
      Value partial = reduceTree(rewriter, loc, op.getKind(), elements);
      if (Value exists = layout.packExists(rewriter, loc, p, size))
        partial =
            arith::SelectOp::create(rewriter, loc, exists, partial, neutral);
      partials.push_back(partial);
    }
    int64_t lanes = layout.context.layout.getLanes();
    for (Value &partial : partials)
      for (int64_t distance = 1; distance < std::min<int64_t>(lanes, 32);
           distance *= 2)
        partial = combine(rewriter, loc, op.getKind(), partial,
                          shuffleXor(rewriter, loc, partial, distance));
    if (lanes > 32)
      reduceAcrossWarps(rewriter, loc, op.getKind(), partials);
    rewriter.replaceOp(op, reduceTree(rewriter, loc, op.getKind(), partials));
    return success();
  }

private:
  static Attribute neutralOf(ReduceKind kind, Type type) {
    Builder b(type.getContext());
    if (isa<FloatType>(type)) {
      float inf = std::numeric_limits<float>::infinity();
      return b.getF32FloatAttr(kind == ReduceKind::add   ? -0.0f
                               : kind == ReduceKind::max ? -inf
                                                         : inf);
    }
    unsigned width = type.getIntOrFloatBitWidth();
    APInt value = kind == ReduceKind::add   ? APInt(width, 0)
                  : kind == ReduceKind::max ? APInt::getSignedMinValue(width)
                                            : APInt::getSignedMaxValue(width);
    return b.getIntegerAttr(type, value);
  }

  Value shuffleXor(OpBuilder &b, Location loc, Value value,
                   int64_t distance) const {
    IndexBuilder x(b, loc);
    return NVVM::ShflOp::create(b, loc, value.getType(), layout.context.rowMask,
                                value, x.i32(distance), x.i32(31),
                                NVVM::ShflKind::bfly, UnitAttr());
  }

  /// Every warp leaves its partials in shared memory, and every thread reads
  /// them all.
  void reduceAcrossWarps(OpBuilder &b, Location loc, ReduceKind kind,
                         SmallVector<Value> &partials) const {
    IndexBuilder x(b, loc);
    int64_t warps = layout.context.layout.getLanes() / 32,
            packs = partials.size();
    auto space = gpu::AddressSpaceAttr::get(b.getContext(),
                                            gpu::AddressSpace::Workgroup);
    auto type = MemRefType::get({warps * packs}, partials.front().getType(),
                                AffineMap(), space);
    Value shared = memref::AllocaOp::create(b, loc, type);
    Value warp = x.div(layout.context.lane, x.constant(32));
    Value isFirst =
        x.compare(arith::CmpIPredicate::eq,
                  x.rem(layout.context.lane, x.constant(32)), x.constant(0));
    writeIf(b, loc, isFirst, [&](OpBuilder &then) {
      IndexBuilder y(then, loc);
      for (auto [p, partial] : llvm::enumerate(partials))
        memref::StoreOp::create(
            then, loc, partial, shared,
            ValueRange{y.add(y.mul(warp, y.constant(packs)), y.constant(p))});
    });
    NVVM::BarrierOp::create(b, loc);
    for (auto [p, partial] : llvm::enumerate(partials)) {
      SmallVector<Value> values;
      for (int64_t w = 0; w < warps; ++w)
        values.push_back(memref::LoadOp::create(
            b, loc, shared, ValueRange{x.constant(w * packs + p)}));
      partial = reduceTree(b, loc, kind, values);
    }
    NVVM::BarrierOp::create(b, loc); // a loop may come back to this memory
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

LogicalResult mlafix::distributeRows(KernelOp kernel,
                                     const RowContext &context) {
  if (failed(checkRowOps(kernel)))
    return failure();
  distributeRowsInLoops(kernel, context);
  // What is left: scalars, and rows that were not walked in loops.
  MLIRContext *ctx = kernel.getContext();
  RowLayout layout{context, kernel.getGuardsAttr()};
  TypeConverter converter;
  converter.addConversion([](Type type) { return type; });
  converter.addConversion(
      [&](RankedTensorType type,
          SmallVectorImpl<Type> &results) -> std::optional<LogicalResult> {
        if (!isRowTile(type))
          return std::nullopt;
        results.append(layout.packsOf(type),
                       layout.packType(type.getElementType()));
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
  target.addLegalOp<KernelOp, ReturnOp, PresentOp>();
  return applyPartialConversion(kernel, target, std::move(patterns));
}
