//===- MergeStates.cpp - merge of lowered states --------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/States/MergeStates.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/States/F32Builder.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace mlafix;

namespace {
/// The weight of a state in a merge.
struct Weight {
  Value value;
  /// An i1 that is true if the weight is 0.
  Value isEmptyState;
};

/// Builds base^difference, which is exactly 1 if the difference is 0. `lost` is
/// the rounding error of `difference`, or null. If `lost` is not null, the base
/// is e, and this error and the rounding error of the exponent are compensated.
Weight buildPower(F32Builder f, Value difference, Value lost, bool isBaseE) {
  Value zero = f.constant(0.0f);
  Value exponent = isBaseE
                       ? f.mul(difference, f.constant(llvm::numbers::log2ef))
                       : difference;
  Value power = f.exp2(exponent);
  if (!lost)
    return {power, f.equal(power, zero)};
  // An absolute error of the exponent becomes the same relative error of the
  // power (Cody and Waite).
  Value rest = f.add(
      f.fma(exponent, f.constant(-llvm::numbers::ln2f), difference), lost);
  // If the lse is -inf, the difference is infinite and `rest` is NaN. So the
  // weight 0 is selected instead of computed.
  Value isEmptyState = f.equal(power, zero);
  return {f.select(isEmptyState, zero, f.fma(power, rest, power)),
          isEmptyState};
}

/// Builds the weights of two states relative to the larger lse. The state with
/// this lse has the weight 1, so one power suffices. If either lse is NaN, so
/// is one of the weights (N6).
SmallVector<Weight> buildTwoWeights(F32Builder f, Value first, Value second,
                                    Value reference, bool isBaseE) {
  Value isFirstLess = f.less(first, second);
  Value least = f.select(isFirstLess, first, second);
  Value difference = f.sub(least, reference), lost;
  if (isBaseE) {
    // Knuth's two-sum recovers the rounding error of the difference, which can
    // be as large as 2^-18 if the lses are at least 64.
    Value back = f.sub(difference, least);
    Value ofLeast = f.sub(least, f.sub(difference, back));
    Value ofReference = f.add(reference, back);
    lost = f.sub(ofLeast, ofReference);
  }
  Weight power = buildPower(f, difference, lost, isBaseE);
  Value one = f.constant(1.0f);
  Value none = f.constantBool(false);
  Weight firstLess = {f.select(isFirstLess, power.value, one),
                      f.select(isFirstLess, power.isEmptyState, none)};
  return {firstLess,
          {f.select(isFirstLess, one, power.value),
           f.select(isFirstLess, none, power.isEmptyState)}};
}

/// Builds the number to subtract from lses, given the largest lse `max`.
Value buildReference(F32Builder f, Value max) {
  // If all states are empty, any finite number works.
  return f.select(f.equal(max, f.negInf()), f.constant(0.0f), max);
}

/// Builds the weights of `states` relative to `max`, the largest lse.
SmallVector<Weight> buildWeights(F32Builder f, ArrayRef<LoweredState> states,
                                 Value max, bool isBaseE) {
  Value reference = buildReference(f, max);
  if (states.size() == 2)
    return buildTwoWeights(f, states[0].max, states[1].max, reference, isBaseE);
  // For more than two states, rounding is not compensated. The compensation
  // would cost registers, and nine operations per state. The end of N10 states
  // the error.
  return llvm::map_to_vector(states, [&](const LoweredState &state) {
    return buildPower(f, f.sub(state.max, reference), Value(), isBaseE);
  });
}
} // namespace

/// Returns true if all elements of `row` are +0.0, as in the payload of a sink.
static bool isZeroRow(Value row) {
  auto splat = row.getDefiningOp<SplatOp>();
  return splat && matchPattern(splat.getScalar(), m_PosZeroFloat());
}

/// Builds the sum of those payloads `acc[index]` that are rows of zeros,
/// without an op per element. All elements of the sum are -0.0 if the states of
/// these payloads are all empty, else +0.0. Returns null if there are no such
/// payloads.
static Value sumZeroRows(F32Builder f, ArrayRef<LoweredState> states,
                         ArrayRef<Weight> weights, size_t index) {
  Value sum;
  for (auto [state, weight] : llvm::zip_equal(states, weights)) {
    if (!isZeroRow(state.acc[index]))
      continue;
    Value zero =
        f.select(weight.isEmptyState, f.constant(-0.0f), f.constant(0.0f));
    sum = sum ? f.add(sum, zero) : zero;
  }
  return sum ? f.splat(sum, states.front().acc[index].getType()) : sum;
}

LoweredState mlafix::buildMerge(OpBuilder &b, Location loc,
                                ArrayRef<LoweredState> states, LogBase base) {
  F32Builder f(b, loc);
  Value max = states.front().max;
  for (const LoweredState &state : states.drop_front())
    max = f.max(max, state.max); // propagates NaN (N6)
  SmallVector<Weight> weights =
      buildWeights(f, states, max, base == LogBase::E);

  SmallVector<Value> dead, sums;
  for (auto [i, acc] : llvm::enumerate(states.front().acc)) {
    dead.push_back(f.splat(f.constant(-0.0f), acc.getType()));
    sums.push_back(sumZeroRows(f, states, weights, i));
  }
  Value sum;
  for (auto [state, weight] : llvm::zip_equal(states, weights)) {
    // The payload of an empty state must not be used (N5). So it is replaced by
    // -0.0, the neutral element of addition: adding it leaves every sum
    // unchanged, even -0.0 (N4).
    for (auto [acc, none, total] : llvm::zip(state.acc, dead, sums)) {
      if (isZeroRow(acc))
        continue;
      Value payload = f.select(weight.isEmptyState, none, acc);
      Value factor = f.splat(weight.value, acc.getType());
      total = total ? f.fma(factor, payload, total) : f.mul(factor, payload);
    }
    sum = sum ? f.fma(weight.value, state.sum, sum)
              : f.mul(weight.value, state.sum);
  }
  return {max, sum, sums};
}

LoweredState mlafix::buildMergeToFirst(OpBuilder &b, Location loc,
                                       ArrayRef<LoweredState> states,
                                       LogBase base) {
  F32Builder f(b, loc);
  LoweredState merged = states.front();
  Value reference = buildReference(f, merged.max);
  for (const LoweredState &state : states.drop_front()) {
    Weight weight =
        buildPower(f, f.sub(state.max, reference), Value(), base == LogBase::E);
    for (auto [acc, total] : llvm::zip(state.acc, merged.acc)) {
      Value none = f.splat(f.constant(-0.0f), acc.getType());
      // Ignores the payload of an empty state (N5).
      Value payload = f.select(weight.isEmptyState, none, acc);
      total = f.fma(f.splat(weight.value, acc.getType()), payload, total);
    }
    merged.sum = f.fma(weight.value, state.sum, merged.sum);
  }
  return merged;
}

SmallVector<Value> mlafix::buildChunkMerge(OpBuilder &b, MergeLoopOp op,
                                           ValueRange running,
                                           ValueRange chunk) {
  Location loc = op.getLoc();
  F32Builder f(b, loc);
  if (op.isOfNumbers())
    return {f.max(running[0], chunk[0])};
  LoweredState all(running), part(chunk);
  if (!op.getToFirst())
    return buildMerge(b, loc, {all, part}, *op.getBaseAttr().getBase())
        .values();
  all.sum = f.add(all.sum, part.sum);
  for (auto [sum, next] : llvm::zip_equal(all.acc, part.acc))
    sum = f.add(sum, next);
  return all.values();
}

RowOp mlafix::getSharedRow(MergeLoopOp op) {
  auto row = op->getParentOfType<RowOp>();
  return row && !row.getGroups().empty() ? row : RowOp();
}

void mlafix::lowerToFor(
    IRRewriter &rewriter, MergeLoopOp op, Value stride, Value offset,
    function_ref<SmallVector<Value>(ValueRange running, ValueRange chunk)>
        merge) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  auto loop = scf::ForOp::create(rewriter, op.getLoc(), op.getLower(),
                                 op.getUpper(), stride, op.getInit());
  rewriter.setInsertionPointToStart(loop.getBody());
  Value index = loop.getInductionVar();
  if (offset)
    index = IndexBuilder(rewriter, op.getLoc()).add(index, offset);
  Block *body = &op.getBody().front();
  auto yield = cast<YieldOp>(body->getTerminator());
  rewriter.inlineBlockBefore(body, loop.getBody(), loop.getBody()->end(),
                             index);
  rewriter.setInsertionPoint(yield);
  SmallVector<Value> merged =
      merge(ValueRange(loop.getRegionIterArgs()), yield.getValues());
  rewriter.replaceOpWithNewOp<scf::YieldOp>(yield, merged);
  rewriter.replaceOp(op, loop.getResults());
}

void mlafix::lowerToFor(IRRewriter &rewriter, MergeLoopOp op) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  Value step = IndexBuilder(rewriter, op.getLoc()).constant(op.getStep());
  lowerToFor(rewriter, op, step, /*offset=*/{},
             [&](ValueRange running, ValueRange chunk) {
               return buildChunkMerge(rewriter, op, running, chunk);
             });
}

static SmallVector<Value> flatten(ArrayRef<ValueRange> ranges) {
  SmallVector<Value> values;
  for (ValueRange range : ranges)
    llvm::append_range(values, range);
  return values;
}

namespace {
struct ConvertMergeLoop : OpConversionPattern<MergeLoopOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(MergeLoopOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> init = flatten(adaptor.getInit());
    auto state = dyn_cast<StateType>(op.getResultTypes().front());
    auto loop = MergeLoopOp::create(
        rewriter, op.getLoc(), ValueRange(init).getTypes(), op.getLower(),
        op.getUpper(), op.getStep(), init,
        state ? state.getBase() : op.getBaseAttr(), op.getToFirst());
    rewriter.inlineRegionBefore(op.getBody(), loop.getBody(),
                                loop.getBody().end());
    SmallVector<SmallVector<Value>> results;
    auto next = loop.getResults().begin();
    for (ValueRange values : adaptor.getInit()) {
      results.emplace_back(next, next + values.size());
      next += values.size();
    }
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

struct ConvertYield : OpConversionPattern<YieldOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(YieldOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<YieldOp>(op, flatten(adaptor.getValues()));
    return success();
  }
};
} // namespace

void mlafix::populateMergeLoopPatterns(RewritePatternSet &patterns,
                                       const TypeConverter &converter) {
  patterns.add<ConvertMergeLoop, ConvertYield>(converter,
                                               patterns.getContext());
}
