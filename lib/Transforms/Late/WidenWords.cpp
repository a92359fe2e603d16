//===- WidenWords.cpp - floats of 16 bits as words of 32 bits -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/ElementaryMath.h"
#include "lib/Transforms/Late/Words.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-widen-words"

namespace mlafix {
#define GEN_PASS_DEF_WIDENWORDSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// Bitcasts `x`, a vector that fills 32-bit words, to these.
static Value getWords(OpBuilder &b, Location loc, Value x) {
  auto type = cast<VectorType>(x.getType());
  int64_t count = type.getNumElements() * type.getElementTypeBitWidth() / 32;
  return vector::BitCastOp::create(b, loc,
                                   VectorType::get({count}, b.getI32Type()), x);
}

/// Widens the elements of `type` in `words` to f32. bf16 takes two instructions
/// per word: a shift for the first element, a mask for the second. Both use the
/// whole word; otherwise LLVM would mask each.
static Value widenWords(OpBuilder &b, Location loc, Type type, Value words) {
  ShapedBuilder s(b, loc, words.getType());
  if (type.isBF16()) {
    Value first = s.floatOf(s.op<arith::ShLIOp>(words, s.i(16)));
    Value second = s.floatOf(s.op<arith::AndIOp>(words, s.i(0xffff0000)));
    return vector::InterleaveOp::create(b, loc, first, second);
  }
  auto widen = [&](Value word) -> Value {
    Value bits = arith::TruncIOp::create(b, loc, s.i16(), word);
    Value narrow = arith::BitcastOp::create(b, loc, s.typeOf(type), bits);
    return arith::ExtFOp::create(b, loc, s.f32(), narrow);
  };
  Value second = widen(s.op<arith::ShRUIOp>(words, s.i(16)));
  return vector::InterleaveOp::create(b, loc, widen(words), second);
}

/// True if all users compute with `value`. If it is only copied, LLVM may fold
/// a widening with a narrowing, which keeps its bits.
static bool isComputedWith(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    return isa<arith::ArithDialect, math::MathDialect>(user->getDialect()) &&
           !isa<arith::TruncFOp, arith::SelectOp, arith::BitcastOp>(user);
  });
}

/// If the only use of `row` is a select with a constant by a scalar condition,
/// that select; sets `other` to the constant. Else null.
static arith::SelectOp getMask(Operation *row, APFloat &other) {
  if (!row->hasOneUse())
    return {};
  auto mask = dyn_cast<arith::SelectOp>(*row->user_begin());
  return mask && isComputedWith(mask) &&
                 !isa<VectorType>(mask.getCondition().getType()) &&
                 (matchPattern(mask.getTrueValue(), m_ConstantFloat(&other)) ||
                  matchPattern(mask.getFalseValue(), m_ConstantFloat(&other)))
             ? mask
             : arith::SelectOp();
}

/// True if the element type of the operand of `widening` can represent `other`;
/// sets `bits` to a word filled with it.
static bool canHold(arith::ExtFOp widening, APFloat other, int64_t &bits) {
  std::optional<APFloat> narrow = convertExactly(
      other, cast<FloatType>(getElementTypeOrSelf(widening.getIn())));
  if (narrow)
    bits = APInt::getSplat(32, narrow->bitcastToAPInt()).getZExtValue();
  return narrow.has_value();
}

/// The operand of `widening` as words; `bits` where `mask` selects its
/// constant.
static Value selectMasked(OpBuilder &b, arith::SelectOp mask, Value row,
                          arith::ExtFOp widening, int64_t bits) {
  Value words = getWords(b, mask.getLoc(), widening.getIn());
  ShapedBuilder s(b, mask.getLoc(), words.getType());
  bool isOtherFirst = mask.getFalseValue() == row;
  return s.select(mask.getCondition(), isOtherFirst ? s.i(bits) : words,
                  isOtherFirst ? words : s.i(bits));
}

/// Masks the words instead of the widened elements, with half as many selects.
/// Returns true on success.
static bool maskWords(arith::ExtFOp widening) {
  APFloat other(0.0f);
  int64_t bits = 0;
  arith::SelectOp mask = getMask(widening, other);
  if (!mask || !canHold(widening, other, bits))
    return false;
  OpBuilder b(mask);
  Value masked = selectMasked(b, mask, widening, widening, bits);
  LDBG() << "masked as words: " << widening;
  Type type = getElementTypeOrSelf(widening.getIn());
  mask.replaceAllUsesWith(widenWords(b, mask.getLoc(), type, masked));
  mask.erase();
  widening.erase();
  return true;
}

/// A widened row of fp8 and the number that scales it.
struct ScaledRow {
  arith::ExtFOp widening;
  vector::BroadcastOp scale;
};
static std::optional<ScaledRow> getScaledRow(arith::MulFOp product) {
  auto of = [](Value row, Value factor) -> std::optional<ScaledRow> {
    auto widening = row.getDefiningOp<arith::ExtFOp>();
    auto scale = factor.getDefiningOp<vector::BroadcastOp>();
    if (!widening || !scale || isa<VectorType>(scale.getSourceType()) ||
        !isa<Float8E4M3FNType, Float8E5M2Type>(
            getElementTypeOrSelf(widening.getIn())) ||
        !fillsWords(widening.getIn().getType(), /*bits=*/8))
      return std::nullopt;
    return ScaledRow{widening, scale};
  };
  std::optional<ScaledRow> row = of(product.getLhs(), product.getRhs());
  return row ? row : of(product.getRhs(), product.getLhs());
}

/// For scaled fp8: masks the words (and the scale, with 1) instead of the
/// product, with a quarter as many selects.
static void maskScaled(arith::MulFOp product) {
  APFloat other(0.0f);
  int64_t bits = 0;
  std::optional<ScaledRow> row = getScaledRow(product);
  if (!row || !row->widening->hasOneUse())
    return;
  auto [widening, scale] = *row;
  arith::SelectOp mask = getMask(product, other);
  if (!mask || !canHold(widening, other, bits))
    return;
  OpBuilder b(mask);
  Location loc = mask.getLoc();
  Value words = selectMasked(b, mask, product, widening, bits);
  Value narrow =
      vector::BitCastOp::create(b, loc, widening.getIn().getType(), words);
  Value wide = arith::ExtFOp::create(b, loc, widening.getType(), narrow);
  Value number = scale.getSource();
  ShapedBuilder s(b, loc, number.getType());
  bool isOtherFirst = mask.getFalseValue() == product.getResult();
  Value factor = s.select(mask.getCondition(), isOtherFirst ? s.f(1) : number,
                          isOtherFirst ? number : s.f(1));
  Value factors = vector::BroadcastOp::create(b, loc, scale.getType(), factor);
  LDBG() << "masked as words of fp8: " << widening;
  mask.replaceAllUsesWith(
      arith::MulFOp::create(b, loc, wide, factors).getResult());
  for (Operation *dead :
       {mask.getOperation(), product.getOperation(), widening.getOperation()})
    dead->erase();
}

/// Selects between two rows as words instead of widened elements: half as many
/// selects, and fewer registers until they are widened.
static void selectWords(arith::SelectOp select) {
  auto first = select.getTrueValue().getDefiningOp<arith::ExtFOp>(),
       second = select.getFalseValue().getDefiningOp<arith::ExtFOp>();
  if (!first || !second || isa<VectorType>(select.getCondition().getType()) ||
      first.getIn().getType() != second.getIn().getType() ||
      !fillsWords(first.getIn().getType()) || !isComputedWith(select))
    return;
  OpBuilder b(select);
  Location loc = select.getLoc();
  Value words = arith::SelectOp::create(b, loc, select.getCondition(),
                                        getWords(b, loc, first.getIn()),
                                        getWords(b, loc, second.getIn()));
  LDBG() << "selected as words: " << select;
  Type type = getElementTypeOrSelf(first.getIn());
  select.replaceAllUsesWith(widenWords(b, loc, type, words));
  select.erase();
}

/// True if `op` widens a row to f32, or scales a widened row.
static bool makesRow(Operation *op) {
  if (auto product = dyn_cast<arith::MulFOp>(op))
    return getScaledRow(product).has_value();
  auto widening = dyn_cast<arith::ExtFOp>(op);
  return widening && (fillsWords(widening.getIn().getType()) ||
                      fillsWords(widening.getIn().getType(), /*bits=*/8));
}

/// Sinks the widening of a row into both branches that use it: until then it
/// takes half or a quarter of the registers, and one branch may mask it.
static void widenInside(scf::IfOp branch) {
  if (branch.getElseRegion().empty())
    return;
  Operation *next = nullptr;
  for (Operation *op = branch->getPrevNode(); op; op = next) {
    next = op->getPrevNode();
    if (!makesRow(op) || !llvm::all_of(op->getUsers(), [&](Operation *user) {
          return branch->isProperAncestor(user);
        }))
      continue;
    Operation *places[] = {findFirstUse(branch.thenBlock(), op),
                           findFirstUse(branch.elseBlock(), op)};
    if (!places[0] || !places[1])
      continue;
    LDBG() << "widened in both branches: " << *op;
    for (Operation *place : places)
      cloneBefore(place, op);
    op->erase();
  }
}

namespace {
class WidenWordsPass : public mlafix::impl::WidenWordsPassBase<WidenWordsPass> {
public:
  void runOnOperation() override {
    if (!isGPU(getTarget(getOperation())))
      return;
    bool hasWords = !getMachine(getOperation()).pairArithmetic;
    if (hasWords)
      getOperation().walk(selectWords);
    getOperation().walk(widenInside);
    if (hasWords) {
      SmallVector<arith::MulFOp> products;
      getOperation().walk([&](arith::MulFOp op) { products.push_back(op); });
      llvm::for_each(products, maskScaled);
    }
    SmallVector<arith::ExtFOp> widenings;
    bool narrowsToF16 = false;
    getOperation().walk([&](Operation *op) {
      if (auto widening = dyn_cast<arith::ExtFOp>(op);
          widening && !op->hasAttr(kSeparateAttr))
        widenings.push_back(widening);
      if (isa<arith::TruncFOp>(op))
        narrowsToF16 |= getElementTypeOrSelf(op->getResult(0)).isF16();
    });
    for (arith::ExtFOp widening : widenings) {
      if (widening->use_empty()) { // rows that were selected
        widening.erase();
        continue;
      }
      Type type = widening.getIn().getType();
      bool isWords = hasWords && fillsWords(type);
      if (isWords && maskWords(widening))
        continue;
      if (!getElementTypeOrSelf(type).isBF16())
        continue;
      OpBuilder b(widening);
      Location loc = widening.getLoc();
      Value wide;
      if (isWords && isComputedWith(widening))
        wide = widenWords(b, loc, getElementTypeOrSelf(type),
                          getWords(b, loc, widening.getIn()));
      else if (narrowsToF16)
        wide = extendBF16(ShapedBuilder(b, loc, widening.getType()),
                          widening.getIn());
      else
        continue;
      LDBG() << "in integers: " << widening;
      widening.replaceAllUsesWith(wide);
      widening.erase();
    }
  }
};
} // namespace
