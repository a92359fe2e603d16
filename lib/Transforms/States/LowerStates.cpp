//===- LowerStates.cpp - lower states to three values ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/AccessPredicate.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/States/F32Builder.h"
#include "lib/Transforms/States/LowerReductions.h"
#include "lib/Transforms/States/MergeStates.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/Support/DebugLog.h"
#include "llvm/Support/MathExtras.h"

#define DEBUG_TYPE "mlafix-lower-states"

namespace mlafix {
#define GEN_PASS_DEF_LOWERSTATESPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// Marks exp(x - max(x)) as `afn` where only its sum is used. The largest term
/// is 1, so flushing subnormal terms to zero does not change the sum. Skips a
/// row x from which other ops also subtract: CSE may merge the marked
/// exponential with another one, of which more than the sum is used.
static void markSummedExponentials(KernelOp kernel) {
  kernel.walk([](ReduceOp sum) {
    auto power = sum.getSource().getDefiningOp<math::ExpOp>();
    auto below = power ? power.getOperand().getDefiningOp<arith::SubFOp>()
                       : arith::SubFOp();
    if (sum.getKind() != ReduceKind::add || !below || !power->hasOneUse())
      return;
    Operation *spread = below.getRhs().getDefiningOp();
    auto most = isa_and_nonnull<SplatOp, BroadcastOp>(spread)
                    ? spread->getOperand(0).getDefiningOp<ReduceOp>()
                    : ReduceOp();
    Value row = below.getLhs();
    if (most && most.getKind() == ReduceKind::max && most.getSource() == row &&
        most.getType() == sum.getType() &&
        llvm::count_if(row.getUsers(), llvm::IsaPred<arith::SubFOp>) == 1)
      power.setFastmath(arith::FastMathFlags::afn);
  });
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

namespace {

/// The converted operands of an op. Each state is three values.
template <typename OpTy>
using Adaptor = typename OpConversionPattern<OpTy>::OneToNOpAdaptor;

bool isBaseE(StateType type) { return *type.getBase().getBase() == LogBase::E; }

/// Builds the three values of a state from its lse and its payload in memory.
/// An lse of +inf means an empty state, too (N2).
LoweredState partsOf(F32Builder f, Value lse, Value row) {
  Value isInf =
      f.equal(lse, f.constant(std::numeric_limits<float>::infinity()));
  return {f.select(isInf, f.negInf(), lse), f.constant(1.0f), row};
}

void lower(LoadStateOp op, Adaptor<LoadStateOp>,
           ConversionPatternRewriter &rewriter) {
  Location loc = op.getLoc();
  F32Builder f(rewriter, loc);
  Value predicate = statePredicate(rewriter, op);
  // The payload needs no `else` value. A state with a false predicate has the
  // lse -inf, so its payload is never used.
  Value row =
      LoadOp::create(rewriter, loc, op.getType().getTileType(), op.getOut(),
                     op.getOutIndices(), predicate, Value());
  Value lse = LoadOp::create(rewriter, loc, rewriter.getF32Type(), op.getLse(),
                             op.getLseIndices(), predicate,
                             predicate ? f.negInf() : Value());
  rewriter.replaceOpWithMultiple(op, {partsOf(f, lse, row).values()});
}

void lower(MakeStateOp op, Adaptor<MakeStateOp> adaptor,
           ConversionPatternRewriter &rewriter) {
  F32Builder f(rewriter, op.getLoc());
  rewriter.replaceOpWithMultiple(
      op, {partsOf(f, adaptor.getLse().front(), adaptor.getRow().front())
               .values()});
}

void lower(IdentityOp op, Adaptor<IdentityOp>,
           ConversionPatternRewriter &rewriter) {
  F32Builder f(rewriter, op.getLoc());
  Value zero = f.constant(0.0f);
  rewriter.replaceOpWithMultiple(
      op,
      {LoweredState(f.negInf(), zero, f.splat(zero, op.getType().getTileType()))
           .values()});
}

void lower(MaxOfOp op, Adaptor<MaxOfOp> adaptor,
           ConversionPatternRewriter &rewriter) {
  rewriter.replaceOp(op, LoweredState(adaptor.getState()).max);
}

void lower(ReferenceOp op, Adaptor<ReferenceOp> adaptor,
           ConversionPatternRewriter &rewriter) {
  F32Builder f(rewriter, op.getLoc());
  // Adding -0.0 preserves every number, including -0.0 (N4).
  Value acc = f.splat(f.constant(-0.0f), op.getType().getTileType());
  LoweredState parts(adaptor.getMax().front(), f.constant(0.0f), acc);
  rewriter.replaceOpWithMultiple(op, {parts.values()});
}

/// Builds a row of |acc|. An element is below +inf if and only if the element
/// of `acc` is finite.
Value buildMagnitude(OpBuilder &b, Location loc, const LoweredState &state) {
  return math::AbsFOp::create(b, loc, state.acc.front());
}

void lower(HasNonfiniteOp op, Adaptor<HasNonfiniteOp> adaptor,
           ConversionPatternRewriter &rewriter) {
  Location loc = op.getLoc();
  F32Builder f(rewriter, loc);
  Value magnitude =
      buildMagnitude(rewriter, loc, LoweredState(adaptor.getState()));
  Value largest = ReduceOp::create(rewriter, loc, rewriter.getF32Type(),
                                   ReduceKind::max, magnitude,
                                   /*in_lane=*/true);
  // The comparison is unordered, so it is also true if the row contains NaN
  // and `largest` therefore is NaN.
  Value inf = f.constant(std::numeric_limits<float>::infinity());
  Value isBad = arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::UGE,
                                      largest, inf);
  // LLVM moves the unlikely branch out of line.
  rewriter.replaceOpWithNewOp<LLVM::ExpectOp>(op, isBad, f.constantBool(false));
}

void lower(RepairOp op, Adaptor<RepairOp> adaptor,
           ConversionPatternRewriter &rewriter) {
  Location loc = op.getLoc();
  F32Builder f(rewriter, loc);
  LoweredState state(adaptor.getState()), again(adaptor.getAgain());
  Value inf = f.splat(f.constant(std::numeric_limits<float>::infinity()),
                      state.acc.front().getType());
  Value isFinite = f.less(buildMagnitude(rewriter, loc, state), inf);
  Value acc = f.select(isFinite, state.acc.front(), again.acc.front());
  rewriter.replaceOpWithMultiple(
      op, {LoweredState(state.max, state.sum, acc).values()});
}

void lower(MergeOp op, Adaptor<MergeOp> adaptor,
           ConversionPatternRewriter &rewriter) {
  SmallVector<LoweredState> states;
  for (ValueRange values : adaptor.getStates())
    states.emplace_back(values);
  LDBG() << op.getLoc() << ": a merge of " << states.size() << " states";
  LogBase base = *op.getType().getBase().getBase();
  LoweredState merged =
      op.getToFirst() ? buildMergeToFirst(rewriter, op.getLoc(), states, base)
                      : buildMerge(rewriter, op.getLoc(), states, base);
  rewriter.replaceOpWithMultiple(op, {merged.values()});
}

void lower(MaskOp op, Adaptor<MaskOp> adaptor,
           ConversionPatternRewriter &rewriter) {
  F32Builder f(rewriter, op.getLoc());
  LoweredState state(adaptor.getState());
  Value live = adaptor.getPredicate().front();
  // A merge multiplies the sum of an empty state by the weight 0. The sum may
  // be NaN, and 0 * NaN is NaN, so replace the sum by 0.
  Value sum = f.select(live, state.sum, f.constant(0.0f));
  Value max = f.select(live, state.max, f.negInf());
  rewriter.replaceOpWithMultiple(op,
                                 {LoweredState(max, sum, state.acc).values()});
}

void lower(RebaseOp op, Adaptor<RebaseOp> adaptor,
           ConversionPatternRewriter &rewriter) {
  F32Builder f(rewriter, op.getLoc());
  LoweredState state(adaptor.getState());
  bool toE = isBaseE(op.getType());
  float factor = toE ? llvm::numbers::ln2f : llvm::numbers::log2ef;
  Value max = f.mul(state.max, f.constant(factor));
  // The product may overflow. Clamp it, since an infinite maximum would mean
  // an empty state.
  if (!toE) {
    float largest = std::numeric_limits<float>::max();
    Value finite = f.max(f.min(max, f.constant(largest)), f.constant(-largest));
    max = f.select(f.equal(state.max, f.negInf()), state.max, finite);
  }
  rewriter.replaceOpWithMultiple(
      op, {LoweredState(max, state.sum, state.acc).values()});
}

/// Normalises a state for a store (N1, N3).
struct Normalized {
  Normalized(F32Builder f, const LoweredState &state, StateType type)
      : f(f), state(state), type(type), isEmpty(f.equal(state.max, f.negInf())),
        // Adding max - max, which is 0 or NaN, makes the sum NaN if max is NaN.
        // So a NaN lse reaches the payload even if nothing has been merged
        // (N6).
        sum(f.add(state.sum, f.sub(state.max, state.max))) {}

  /// Builds the payload, divided by `scale` if that is not null.
  Value buildPayload(OpBuilder &b, Location loc, Value scale) {
    Type tile = type.getTileType();
    Value inverse = arith::DivFOp::create(b, loc, f.constant(1.0f), sum,
                                          arith::FastMathFlags::arcp);
    // A copied row has the sum 1, so `inverse` becomes exactly 1 / scale.
    if (scale)
      inverse = f.mul(inverse, f.div(f.constant(1.0f), scale));
    Value row = f.mul(state.acc.front(), f.splat(inverse, tile));
    return f.select(isEmpty, f.splat(f.constant(0.0f), tile), row);
  }

  Value buildLse(OpBuilder &b, Location loc) {
    // `afn` needs a sum that is not subnormal. The sum is 0, NaN, or at least
    // the largest weight, which is 1.
    Value log = math::Log2Op::create(b, loc, sum, arith::FastMathFlags::afn);
    Value scale = f.constant(isBaseE(type) ? llvm::numbers::ln2f : 1.0f);
    // A sum of 1 means a copy, so an lse of -0.0 stays -0.0 (N4).
    Value summed = f.fma(log, scale, state.max);
    Value lse = f.select(f.equal(sum, f.constant(1.0f)), state.max, summed);
    return f.select(isEmpty, f.negInf(), lse);
  }

  F32Builder f;
  LoweredState state;
  StateType type;
  Value isEmpty, sum;
};

void lower(StoreStateOp op, Adaptor<StoreStateOp> adaptor,
           ConversionPatternRewriter &rewriter) {
  Location loc = op.getLoc();
  Normalized state({rewriter, loc}, LoweredState(adaptor.getState()),
                   op.getState().getType());
  if (op.getOut())
    StoreOp::create(rewriter, loc,
                    state.buildPayload(rewriter, loc, op.getScale()),
                    op.getOut(), op.getOutIndices(), op.getPredicate());
  if (op.getLse())
    StoreOp::create(rewriter, loc, state.buildLse(rewriter, loc), op.getLse(),
                    op.getLseIndices(), op.getPredicate());
  rewriter.eraseOp(op);
}

void lower(PayloadOp op, Adaptor<PayloadOp> adaptor,
           ConversionPatternRewriter &rewriter) {
  Normalized state({rewriter, op.getLoc()}, LoweredState(adaptor.getState()),
                   op.getState().getType());
  rewriter.replaceOp(op, state.buildPayload(rewriter, op.getLoc(), Value()));
}

void lower(LseOfOp op, Adaptor<LseOfOp> adaptor,
           ConversionPatternRewriter &rewriter) {
  LoweredState parts(adaptor.getState());
  // A state made from a row and its lse has the weight 1, so its lse is the
  // maximum.
  if (op.getState().getDefiningOp<MakeStateOp>()) {
    rewriter.replaceOp(op, parts.max);
    return;
  }
  Normalized state({rewriter, op.getLoc()}, parts, op.getState().getType());
  rewriter.replaceOp(op, state.buildLse(rewriter, op.getLoc()));
}

template <typename OpTy> struct Lowering : OpConversionPattern<OpTy> {
  using OpConversionPattern<OpTy>::OpConversionPattern;
  LogicalResult
  matchAndRewrite(OpTy op, Adaptor<OpTy> adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    lower(op, adaptor, rewriter);
    return success();
  }
};

/// Lowers all ops of the types `OpTys` by the functions above.
template <typename... OpTys>
void addLowerings(RewritePatternSet &patterns, ConversionTarget &legal,
                  const TypeConverter &converter) {
  patterns.add<Lowering<OpTys>...>(converter, patterns.getContext());
  legal.addIllegalOp<OpTys...>();
}

/// Lowers selects of states. Canonicalisation turns `scf.if` into such selects.
struct LowerSelect : OpConversionPattern<arith::SelectOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(arith::SelectOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isa<StateType>(op.getType()))
      return rewriter.notifyMatchFailure(op, "not a select of states");
    F32Builder f(rewriter, op.getLoc());
    SmallVector<Value> results;
    for (auto [x, y] :
         llvm::zip(adaptor.getTrueValue(), adaptor.getFalseValue()))
      results.push_back(f.select(adaptor.getCondition().front(), x, y));
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

/// Binds bases that are still names to their defaults, since the lowering
/// depends on bases.
LogicalResult bindBases(KernelOp kernel) {
  AttrTypeReplacer replacer;
  NamedAttrList bindings(
      kernel.getBindings().value_or(DictionaryAttr::get(kernel.getContext())));
  auto boundBase = [&](StringRef name) {
    auto text = dyn_cast_if_present<StringAttr>(bindings.get(name));
    return text ? text.getValue() : StringRef();
  };
  for (const BindableName &name : getBindableNames(kernel)) {
    if (name.kind != BindableName::Base)
      continue;
    StringRef value = resolveBase(kernel, name.name, boundBase);
    if (value.empty())
      return kernel.emitError()
             << "expected base \"" << name.name
             << "\" to be bound before states are lowered, got a name";
    auto bound = BaseAttr::get(kernel.getContext(), value);
    bindings.set(name.name, bound.getValue());
    replacer.addReplacement(
        [name = name.name, bound](BaseAttr base) -> std::optional<Attribute> {
          if (base.getName() == name)
            return bound;
          return std::nullopt;
        });
  }
  if (bindings.empty())
    return success();
  kernel.setBindingsAttr(bindings.getDictionary(kernel.getContext()));
  kernel->walk([&](Operation *op) {
    replacer.replaceElementsIn(op, /*replaceAttrs=*/false,
                               /*replaceLocs=*/false, /*replaceTypes=*/true);
  });
  return success();
}

class LowerStatesPass
    : public mlafix::impl::LowerStatesPassBase<LowerStatesPass> {
public:
  using LowerStatesPassBase::LowerStatesPassBase;

  void runOnOperation() override {
    FailureOr<MachineModel> model = getMachine(getOperation(), target, machine);
    if (failed(model) || failed(bindBases(getOperation())))
      return signalPassFailure();
    MLIRContext *context = &getContext();
    TypeConverter converter;
    converter.addConversion([](Type type) { return type; });
    converter.addConversion(
        [](StateType type, SmallVectorImpl<Type> &results) -> LogicalResult {
          Type f32 = Float32Type::get(type.getContext());
          results.append({f32, f32, type.getTileType()});
          return success();
        });

    RewritePatternSet patterns(context);
    patterns.add<LowerSelect>(converter, context);
    populateMergeLoopPatterns(patterns, converter);
    bool isOnGPU = isGPU(target);
    int64_t inBlock =
        isOnGPU ? model->sharedElements * model->threadsPerBlock : 0;
    bool isSeparate = model->bf16Conversion && model->narrowWords;
    populateLowerReductionPatterns(
        patterns, converter, isOnGPU ? model->byIndexElements : 0,
        model->byLaneElements, inBlock,
        isSeparate ? inBlock * std::max<int64_t>(1, model->clusterBlocks) : 0,
        isOnGPU);
    ConversionTarget legal(*context);
    legal.markUnknownOpDynamicallyLegal(
        [&](Operation *op) { return converter.isLegal(op); });
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                         legal);
    addLowerings<LoadStateOp, MakeStateOp, StoreStateOp, IdentityOp, MaxOfOp,
                 ReferenceOp, HasNonfiniteOp, RepairOp, MergeOp, MaskOp,
                 RebaseOp, PayloadOp, LseOfOp>(patterns, legal, converter);
    legal.addIllegalOp<ArgReduceOp, TopKOp>();
    legal.addDynamicallyLegalOp<ReduceOp>(reducesNumbers);
    // Kernels and grids stay as they are, since their regions have no states as
    // arguments. Only the ops in these regions are converted.
    legal.addLegalOp<KernelOp, ForallOp, RaggedForallOp, ReturnOp>();
    if (failed(
            applyPartialConversion(getOperation(), legal, std::move(patterns))))
      return signalPassFailure();
    markSummedExponentials(getOperation());
  }
};
} // namespace
