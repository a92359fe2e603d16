//===- WidenWords.cpp - floats of 16 bits as words of 32 bits -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/ElementaryMath.h"
#include "lib/Conversion/Passes.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-widen-words"

namespace mlafix {
#define GEN_PASS_DEF_WIDENWORDSPASS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// Whether `type` fills words of 32 bits, each with two elements.
static bool fillsWords(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getRank() == 1 &&
         vector.getElementTypeBitWidth() == 16 &&
         vector.getNumElements() % 2 == 0;
}

/// The words of `x`, a vector that fills them.
static Value getWords(OpBuilder &b, Location loc, Value x) {
  int64_t count = cast<VectorType>(x.getType()).getNumElements() / 2;
  return vector::BitCastOp::create(b, loc,
                                   VectorType::get({count}, b.getI32Type()), x);
}

/// The elements in `words` of `type`, as f32: bf16 by two instructions a word,
/// of which the first element moves up and the second one loses what is below
/// it. Both elements take the word, or LLVM would mask them one by one.
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

/// Whether all that uses `value` computes with it. What is only moved keeps its
/// bits if LLVM finds a widening before a narrowing.
static bool isComputedWith(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    return isa<arith::ArithDialect, math::MathDialect>(user->getDialect()) &&
           !isa<arith::TruncFOp, arith::SelectOp, arith::BitcastOp>(user);
  });
}

/// `widening` if it is masked, and used by the mask alone: a selection by one
/// condition between it and a constant that its elements' type can hold. Sets
/// `bits` to those of the constant.
static arith::SelectOp getMask(arith::ExtFOp widening, APInt &bits) {
  if (!widening->hasOneUse())
    return {};
  auto mask = dyn_cast<arith::SelectOp>(*widening->user_begin());
  APFloat other(0.0f);
  if (!mask || !isComputedWith(mask) ||
      isa<VectorType>(mask.getCondition().getType()) ||
      !(matchPattern(mask.getTrueValue(), m_ConstantFloat(&other)) ||
        matchPattern(mask.getFalseValue(), m_ConstantFloat(&other))))
    return {};
  auto narrow = cast<FloatType>(getElementTypeOrSelf(widening.getIn()));
  bool isInexact = false;
  other.convert(narrow.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                &isInexact);
  if (isInexact || other.isNaN())
    return {};
  bits = other.bitcastToAPInt();
  return mask;
}

/// Masks the words of what is widened, half as many selections: true if so.
static bool maskWords(arith::ExtFOp widening) {
  APInt bits;
  arith::SelectOp mask = getMask(widening, bits);
  if (!mask)
    return false;
  OpBuilder b(mask);
  Location loc = mask.getLoc();
  Value words = getWords(b, loc, widening.getIn());
  ShapedBuilder s(b, loc, words.getType());
  Value other = s.i(bits.getZExtValue() * 0x10001);
  bool isOtherFirst = mask.getFalseValue() == widening.getResult();
  Value masked = s.select(mask.getCondition(), isOtherFirst ? other : words,
                          isOtherFirst ? words : other);
  LDBG() << "masked as words: " << widening;
  Type type = getElementTypeOrSelf(widening.getIn());
  mask.replaceAllUsesWith(widenWords(b, loc, type, masked));
  mask.erase();
  widening.erase();
  return true;
}

/// What widens words into the operand `index` of `yield`; null for another.
static arith::ExtFOp getWidening(scf::YieldOp yield, unsigned index) {
  auto widening = yield.getOperand(index).getDefiningOp<arith::ExtFOp>();
  return widening && fillsWords(widening.getIn().getType()) ? widening
                                                            : arith::ExtFOp();
}

/// Has `yield` yield what `widening` widens.
static void yieldNarrow(scf::YieldOp yield, unsigned index,
                        arith::ExtFOp widening) {
  yield->setOperand(index, widening.getIn());
  if (widening->use_empty())
    widening.erase();
}

/// Words that each branch widens are widened behind the branches: half as many
/// registers join there, and what masks them masks words.
static void widenBehind(scf::IfOp branch) {
  SmallVector<Type> types(branch.getResultTypes());
  SmallVector<unsigned> moved;
  for (unsigned i = 0; i < types.size(); ++i) {
    scf::YieldOp yields[] = {branch.thenYield(), branch.elseYield()};
    arith::ExtFOp first = getWidening(yields[0], i),
                  second = getWidening(yields[1], i);
    if (!first || !second ||
        first.getIn().getType() != second.getIn().getType())
      continue;
    moved.push_back(i);
    types[i] = first.getIn().getType();
    yieldNarrow(yields[0], i, first);
    yieldNarrow(yields[1], i, second);
  }
  if (moved.empty())
    return;
  LDBG() << moved.size() << " rows are widened behind " << branch.getLoc();
  OpBuilder b(branch);
  auto narrow =
      scf::IfOp::create(b, branch.getLoc(), types, branch.getCondition(),
                        /*withElseRegion=*/true);
  narrow.getThenRegion().takeBody(branch.getThenRegion());
  narrow.getElseRegion().takeBody(branch.getElseRegion());
  SmallVector<Value> results(narrow.getResults());
  for (unsigned i : moved)
    results[i] = arith::ExtFOp::create(
        b, branch.getLoc(), branch.getResult(i).getType(), results[i]);
  branch.replaceAllUsesWith(results);
  branch.erase();
}

/// Selects between words in place of what they are widened to, where one
/// condition selects between two rows: half as many selections, and fewer
/// registers until they are widened. True if so.
static bool selectWords(arith::SelectOp select) {
  auto first = select.getTrueValue().getDefiningOp<arith::ExtFOp>(),
       second = select.getFalseValue().getDefiningOp<arith::ExtFOp>();
  if (!first || !second || isa<VectorType>(select.getCondition().getType()) ||
      first.getIn().getType() != second.getIn().getType() ||
      !fillsWords(first.getIn().getType()) || !isComputedWith(select))
    return false;
  OpBuilder b(select);
  Location loc = select.getLoc();
  Value words = arith::SelectOp::create(b, loc, select.getCondition(),
                                        getWords(b, loc, first.getIn()),
                                        getWords(b, loc, second.getIn()));
  LDBG() << "selected as words: " << select;
  Type type = getElementTypeOrSelf(first.getIn());
  select.replaceAllUsesWith(widenWords(b, loc, type, words));
  select.erase();
  return true;
}

namespace {
class WidenWordsPass : public mlafix::impl::WidenWordsPassBase<WidenWordsPass> {
public:
  void runOnOperation() override {
    if (!isGPU(getTarget(getOperation())))
      return;
    bool hasWords = !getMachine(getOperation()).pairArithmetic;
    SmallVector<arith::ExtFOp> widenings;
    bool narrowsToF16 = false;
    if (hasWords) {
      getOperation().walk(widenBehind);
      getOperation().walk([](arith::SelectOp select) { selectWords(select); });
    }
    getOperation().walk([&](Operation *op) {
      if (auto widening = dyn_cast<arith::ExtFOp>(op))
        widenings.push_back(widening);
      if (isa<arith::TruncFOp>(op))
        narrowsToF16 |= getElementTypeOrSelf(op->getResult(0)).isF16();
    });
    for (arith::ExtFOp widening : widenings) {
      if (widening->use_empty()) { // of rows that were selected
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
