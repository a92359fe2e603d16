//===- RowsToPacks.cpp - convert row tiles to packs -----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/MlafixThread.h"
#include "lib/Transforms/AccessPredicate.h"
#include "lib/Transforms/GridLowering.h"
#include "lib/Transforms/Layout/LongRows.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Rows/PackAccess.h"
#include "lib/Transforms/Rows/RowAccess.h"
#include "lib/Transforms/Rows/RowReduce.h"
#include "lib/Transforms/Rows/RowScan.h"
#include "lib/Transforms/Rows/RowSwap.h"
#include "lib/Transforms/States/MergeStates.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-rows-to-packs"

namespace mlafix {
#define GEN_PASS_DEF_ROWSTOPACKSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

namespace {

template <typename OpTy> struct RowPattern : OpConversionPattern<OpTy> {
  RowPattern(const TypeConverter &converter, MLIRContext *context,
             const RowLayout &layout)
      : OpConversionPattern<OpTy>(converter, context), layout(layout) {}
  const RowLayout &layout;
};

/// Lets every lane execute a load of a scalar.
struct DistributeScalarLoad : RowPattern<LoadOp> {
  using RowPattern::RowPattern;
  LogicalResult
  matchAndRewrite(LoadOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (isRowTile(op.getType()))
      return rewriter.notifyMatchFailure(op, "of a row");
    Location loc = op.getLoc();
    Value source = op.getSource();
    Value predicate = accessPredicate(rewriter, loc, op.getPredicate(), source);
    // An absent optional tensor reads as zero, not as the `else` value. That
    // value applies only where the predicate of the load itself is false.
    Type element = cast<MemRefType>(source.getType()).getElementType();
    Value value = readMemory(
        rewriter, loc, layout, predicate, element, source,
        buildIndices(rewriter, loc, op.getAccesses().front(), Value()));
    value = widen(rewriter, loc, source, op.getType(), value, predicate);
    if (op.getOther())
      value = arith::SelectOp::create(rewriter, loc, op.getPredicate(), value,
                                      op.getOther());
    rewriter.replaceOp(op, value);
    return success();
  }
};

/// Lets only the first lane execute a store of a scalar.
struct DistributeScalarStore : RowPattern<StoreOp> {
  using RowPattern::RowPattern;
  LogicalResult
  matchAndRewrite(StoreOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (isRowTile(op.getValue().getType()))
      return rewriter.notifyMatchFailure(op, "of a row");
    Location loc = op.getLoc();
    Value target = op.getTarget();
    Value predicate = accessPredicate(rewriter, loc, op.getPredicate(), target);
    Value value = narrow(rewriter, loc, target, adaptor.getValue().front());
    SmallVector<Value> indices =
        buildIndices(rewriter, loc, op.getAccesses().front(), Value());
    if (layout.lane) {
      IndexBuilder x(rewriter, loc);
      Value isFirst =
          x.compare(arith::CmpIPredicate::eq, layout.lane, x.constant(0));
      predicate = both(rewriter, loc, predicate, isFirst);
    }
    writeIf(rewriter, loc, predicate, [&](OpBuilder &then) {
      memref::StoreOp::create(then, loc, value, target, indices);
    });
    rewriter.eraseOp(op);
    return success();
  }
};

/// Applies an op to each pack of a row separately.
struct DistributePackwise : ConversionPattern {
  DistributePackwise(const TypeConverter &converter, MLIRContext *context,
                     const RowLayout &layout)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/1,
                          context),
        layout(layout) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isTileOp(op) || !isPackwise(op))
      return rewriter.notifyMatchFailure(op, "not done to each pack of a row");
    Type tile = getTile(op);
    SmallVector<Value> packs;
    for (int64_t p = 0, n = layout.packsOf(tile); p < n; ++p) {
      SmallVector<Value> mine;
      for (ValueRange values : operands)
        mine.push_back(values.size() == 1 ? values.front() : values[p]);
      auto positionIn = [&](Value memref) -> PackPosition {
        Location loc = op->getLoc();
        if (memref && !getKernelArgument(memref))
          return {IndexBuilder(rewriter, loc).constant(p * layout.packOf(tile)),
                  Value(), Value()};
        return layout.positionOf(rewriter, loc, tile, p);
      };
      Value pack = doToPack(rewriter, layout, op, mine, positionIn);
      packs.append(isUniform(op) ? n : 1, pack);
      if (isUniform(op))
        break;
    }
    if (op->getNumResults() == 0)
      rewriter.eraseOp(op);
    else
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
    if (layout.isGPU && isNarrowExtreme(op))
      partials = {reduceInHalves(rewriter, layout, op, adaptor.getSource())};
    else
      for (auto [p, pack] : llvm::enumerate(adaptor.getSource()))
        partials.push_back(reducePack(
            rewriter, layout, op, pack,
            layout.positionOf(rewriter, loc, op.getSource().getType(), p)
                .exists));
    // If the order does not matter, each lane reduces its packs first and
    // exchanges a single value. The order of a sum must not depend on the
    // number of packs per lane (N9), so a sum combines packs last.
    bool isOrdered = op.getKind() == ReduceKind::add;
    if (!isOrdered)
      partials = reduceAcrossPacks(rewriter, layout, op, partials);
    reduceAcrossLanes(rewriter, layout, op, partials);
    if (isOrdered)
      partials = reduceAcrossPacks(rewriter, layout, op, partials);
    if (isRowTile(op.getType()))
      for (Value &element : partials)
        element = vector::BroadcastOp::create(
            rewriter, loc, layout.packType(op.getType()), element);
    rewriter.replaceOpWithMultiple(op, {partials});
    return success();
  }
};

struct DistributeScan : RowPattern<ScanOp> {
  using RowPattern::RowPattern;
  LogicalResult
  matchAndRewrite(ScanOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<ScannedPack> scanned;
    for (auto [p, pack] : llvm::enumerate(adaptor.getSource()))
      scanned.push_back(scanPack(
          rewriter, layout, op, pack,
          layout.positionOf(rewriter, op.getLoc(), op.getType(), p).exists));
    scanAcrossLanes(rewriter, layout, op, scanned);
    rewriter.replaceOpWithMultiple(
        op, {scanAcrossPacks(rewriter, layout, op, scanned)});
    return success();
  }
};

struct DistributeSwap : RowPattern<SwapOp> {
  using RowPattern::RowPattern;
  LogicalResult
  matchAndRewrite(SwapOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithMultiple(
        op, {swapPacks(rewriter, layout, op, adaptor.getSource())});
    return success();
  }
};

struct DistributeBroadcast : RowPattern<BroadcastOp> {
  using RowPattern::RowPattern;
  LogicalResult
  matchAndRewrite(BroadcastOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> packs;
    int64_t met = layout.packsOfGroup(getTileDim(op.getType()));
    for (int64_t p = 0, n = layout.packsOf(op.getType()); p < n; ++p)
      packs.push_back(
          broadcastElement(rewriter, layout, op, adaptor.getSource()[p / met]));
    rewriter.replaceOpWithMultiple(op, {packs});
    return success();
  }
};
} // namespace

/// Checks that all rows together have at most `most` packs per lane. Each pack
/// becomes a value, since this pass creates no loops over packs.
static LogicalResult verifyUnrolled(KernelOp kernel, const RowLayout &layout,
                                    int64_t most) {
  int64_t packs = 0;
  Operation *first = nullptr;
  kernel.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (isRowTile(type)) {
        packs += layout.packsOf(type);
        first = first ? first : op;
      }
  });
  LDBG() << kernel.getSymName() << ": " << packs << " packs of a lane";
  if (packs <= most)
    return success();
  return first->emitError()
         << "expected at most " << most
         << " packs of rows per thread where a while loop carries rows, got "
         << packs << "; shorten the rows";
}

static LogicalResult convertRows(KernelOp kernel, const RowLayout &layout) {
  MLIRContext *ctx = kernel.getContext();
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
  patterns.add<DistributeScalarLoad, DistributeScalarStore, DistributePackwise,
               DistributeReduce, DistributeScan, DistributeSwap,
               DistributeBroadcast>(converter, ctx, layout);
  populateMergeLoopPatterns(patterns, converter);
  ConversionTarget target(*ctx);
  target.markUnknownOpDynamicallyLegal(
      [&](Operation *op) { return converter.isLegal(op); });
  scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                       target);
  target.addIllegalOp<LoadOp, LoadIntoOp, SwapOp, StoreOp, StoreMembersOp,
                      SplatOp, IotaOp, ReduceOp, ScanOp, BroadcastOp>();
  target.addLegalOp<KernelOp, ReturnOp, PresentOp, SameTensorOp>();
  return applyPartialConversion(kernel, target, std::move(patterns));
}

namespace {
class RowsToPacksPass
    : public mlafix::impl::RowsToPacksPassBase<RowsToPacksPass> {
public:
  using RowsToPacksPassBase::RowsToPacksPassBase;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    if (failed(verifyPlanned(kernel)) || failed(verifyRowOps(kernel)))
      return signalPassFailure();
    RowLayout layout(kernel);
    if (failed(verifyUnrolled(kernel, layout, packs)) ||
        failed(convertRows(kernel, layout)))
      return signalPassFailure();
  }
};
} // namespace
