//===- ReplaceDivisions.cpp - divisions that products can do --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// By a power of two of f8E8M0FNU, 2^-127 to 2^127: the product with its
// inverse, which is such a power too.
//
// By a constant c = m * 2^e with an odd m below 2^20: with h the largest f32
// that is not above 1 / c, and l the f32 nearest to 1 / c - h,
//
//   x / c = x * h + (x * l), in one operation behind the product
//
// rounded to nearest. For h + l is off 1 / c by less than 2^-47 of it, and
// rounding x * l adds less than that: together less than 2^-22 units in the
// last place of the quotient. In such units, a quotient X * 2^s / m of a
// significand X that is not halfway between two floats is at least 1 / (2 m)
// from any number that is, hence more than that; and none is halfway, since m
// would divide X and the quotient would have no more digits than X. Where x * l
// is below 2^-126, it is off by up to 2^-150 as well: with a small m, of a few
// units of the quotient, that is too little to matter, too. An infinite x stays
// infinite, since h and l are above 0. (Brisebarre and Muller, "Correctly
// rounded multiplication by arbitrary precision constants", IEEE Trans. Comput.
// 57, 2008, have other constants.)
//
// By a number whose bounds its operations tell, as those of tanh do: the
// product with its reciprocal and a correction, which ShareReciprocals.cpp
// explains. Neither range needs a check.
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/ElementaryMath.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/ShapedBuilder.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/DebugLog.h"

#include <cmath>
#include <limits>

#define DEBUG_TYPE "mlafix-replace-divisions"

namespace mlafix {
#define GEN_PASS_DEF_REPLACEDIVISIONSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

static constexpr float kLargestConstant = 0x1p40f;
static constexpr uint32_t kOddParts = 1u << 20;

/// The value of a splat f32 constant; 0 for other values.
static float getConstant(Value value) {
  APFloat number(0.0f);
  if (!matchPattern(value, m_ConstantFloat(&number)) ||
      !getElementTypeOrSelf(value).isF32())
    return 0.0f;
  return number.convertToFloat();
}

/// The f32 inverse of the number `power`, an f8E8M0FNU. The exponent fields of
/// a number and its inverse add up to 254; NaN (255) is its own inverse.
static Value buildInverseOfPower(OpBuilder &b, arith::ExtFOp power) {
  Location loc = power.getLoc();
  Value code = power.getIn();
  Type type = code.getType(), i8 = b.getI8Type();
  if (auto vector = dyn_cast<VectorType>(type))
    i8 = vector.cloneWith(std::nullopt, i8);
  auto cast = [&](Value x, Type to) {
    return UnrealizedConversionCastOp::create(b, loc, to, x).getResult(0);
  };
  IntegerAttr sum = b.getI8IntegerAttr(static_cast<int8_t>(254));
  TypedAttr sums = sum;
  if (auto vector = dyn_cast<VectorType>(i8))
    sums = DenseElementsAttr::get(vector, sum.getValue());
  Value all = arith::ConstantOp::create(b, loc, sums);
  Value inverse = arith::SubIOp::create(b, loc, all, cast(code, i8));
  return arith::ExtFOp::create(b, loc, power.getType(), cast(inverse, type));
}

/// 1 / `divisor` if that is a power of two from f8E8M0FNU, in any shape;
/// otherwise null, and nothing is built.
static Value invertPower(OpBuilder &b, Value divisor) {
  Operation *op = divisor.getDefiningOp();
  if (auto power = dyn_cast_or_null<arith::ExtFOp>(op))
    return isa<Float8E8M0FNUType>(getElementTypeOrSelf(power.getIn()))
               ? buildInverseOfPower(b, power)
               : Value();
  if (!isa_and_nonnull<vector::BroadcastOp, vector::ExtractOp>(op) ||
      op->getNumOperands() != 1)
    return Value();
  Value inverse = invertPower(b, op->getOperand(0));
  if (!inverse)
    return Value();
  IRMapping mapping;
  mapping.map(op->getOperand(0), inverse);
  return b.clone(*op, mapping)->getResult(0);
}

/// True if multiplying by the inverse, split into two parts, gives the
/// correctly rounded quotient for dividends of at least `least`.
static bool isReplaceable(float divisor, float least) {
  if (!(divisor > 1.0f) || divisor > kLargestConstant || !(least > 0.0f))
    return false;
  int exponent = 0;
  auto significand =
      static_cast<uint32_t>(std::ldexp(std::frexp(divisor, &exponent), 24));
  uint32_t odd = significand >> llvm::countr_zero(significand);
  int ofQuotient = std::ilogb(double(least) / divisor);
  // In ulps of the least quotient.
  double off = 0x1p-22 + std::ldexp(0x1p-150, 23 - ofQuotient);
  return odd > 1 && odd < kOddParts && ofQuotient >= -126 && off < 0.5 / odd;
}

/// A lower bound of `value` unless it is NaN; 0 if none is known.
static float getLeast(Value value) {
  Operation *op = value.getDefiningOp();
  return isa_and_nonnull<arith::MaximumFOp>(op) ? getConstant(op->getOperand(1))
                                                : 0.0f;
}

static Value buildByConstant(OpBuilder &b, Location loc, Value x, float c) {
  double inverse = 1.0 / c;
  auto high = static_cast<float>(inverse);
  if (high > inverse)
    high = std::nextafterf(high, 0.0f);
  // The error of `low` is far below its ulp.
  auto low = static_cast<float>(std::fma(-double(high), double(c), 1.0) / c);
  ShapedBuilder s(b, loc, x.getType());
  Value less = s.op<arith::MulFOp>(x, s.f(low));
  return s.fma(x, s.f(high), less);
}

namespace {
/// The range of a value unless it is NaN.
struct Interval {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  bool isWithin(double least, double most) const {
    return low >= least && high <= most;
  }
};
} // namespace

static Interval getInterval(Value value);

/// The range of a monotonic function from its values at the ends; an end that
/// is NaN, such as 0 * inf, gives no bound.
static Interval getBetween(std::initializer_list<double> ends) {
  if (llvm::any_of(ends, [](double end) { return std::isnan(end); }))
    return {};
  return {std::min(ends), std::max(ends)};
}

static Interval getIntervalOfBinary(Operation *op) {
  Interval x = getInterval(op->getOperand(0)),
           y = getInterval(op->getOperand(1));
  if (isa<arith::AddFOp>(op))
    return getBetween({x.low + y.low, x.high + y.high});
  if (isa<arith::SubFOp>(op))
    return getBetween({x.low - y.high, x.high - y.low});
  return getBetween(
      {x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high});
}

/// The range implied by the ops that compute `value`, including their rounding:
/// for example, the power of a number <= 0 is at most 2.
static Interval getInterval(Value value) {
  Operation *op = value.getDefiningOp();
  APFloat number(0.0f);
  if (!op)
    return {};
  if (matchPattern(value, m_ConstantFloat(&number)))
    return number.isNaN()
               ? Interval()
               : Interval{number.convertToDouble(), number.convertToDouble()};
  if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(op))
    return getIntervalOfBinary(op);
  Interval all;
  if (isa<math::AbsFOp>(op))
    all.low = 0.0;
  if (isa<math::ExpOp, math::Exp2Op>(op)) {
    all.low = 0.0;
    if (getInterval(op->getOperand(0)).high <= 0.0)
      all.high = 2.0;
  }
  return all;
}

/// True if `value` is 0, NaN or at least 2^-60 in magnitude: a sum with a
/// constant c is either 0 or at least 2^-25 c.
static bool isCoarse(Value value) {
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<arith::AddFOp, arith::SubFOp>(op))
    return std::abs(getConstant(value)) >= 0x1p-60f;
  return llvm::any_of(op->getOperands(), [](Value operand) {
    return std::abs(getConstant(operand)) >= 0x1p-35f;
  });
}

/// x / y through the reciprocal of y if their ranges allow it, else null.
static Value buildInRange(OpBuilder &b, arith::DivFOp op) {
  Value x = op.getLhs(), y = op.getRhs();
  if (!getInterval(y).isWithin(0x1p-20, 0x1p20) ||
      !getInterval(x).isWithin(-0x1p60, 0x1p60) || !isCoarse(x))
    return Value();
  Location loc = op.getLoc();
  Value near = y;
  if (auto vector = dyn_cast<VectorType>(y.getType())) {
    SmallVector<Value> elements;
    for (int64_t i = 0; i < vector.getNumElements(); ++i)
      elements.push_back(
          buildNearReciprocal(b, loc, vector::ExtractOp::create(b, loc, y, i)));
    near = vector::FromElementsOp::create(b, loc, vector, elements);
  } else {
    near = buildNearReciprocal(b, loc, y);
  }
  ShapedBuilder s(b, loc, y.getType());
  return buildQuotient(s, x, y, buildReciprocal(s, y, near));
}

namespace {
class ReplaceDivisionsPass
    : public mlafix::impl::ReplaceDivisionsPassBase<ReplaceDivisionsPass> {
public:
  void runOnOperation() override {
    SmallVector<arith::DivFOp> divisions;
    getOperation().walk([&](arith::DivFOp op) {
      if (getElementTypeOrSelf(op.getType()).isF32() &&
          op.getFastmath() == arith::FastMathFlags::none)
        divisions.push_back(op);
    });
    for (arith::DivFOp op : divisions) {
      Value result = replace(op);
      if (!result)
        continue;
      LDBG() << "a product for " << op;
      op.replaceAllUsesWith(result);
      op.erase();
    }
  }

private:
  static Value replace(arith::DivFOp op) {
    OpBuilder b(op);
    Location loc = op.getLoc();
    if (Value inverse = invertPower(b, op.getRhs()))
      return getConstant(op.getLhs()) == 1.0f
                 ? inverse
                 : Value(arith::MulFOp::create(b, loc, op.getLhs(), inverse));
    float divisor = getConstant(op.getRhs());
    return isReplaceable(divisor, getLeast(op.getLhs()))
               ? buildByConstant(b, loc, op.getLhs(), divisor)
               : buildInRange(b, op);
  }
};
} // namespace
