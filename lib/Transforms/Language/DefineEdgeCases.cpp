//===- DefineEdgeCases.cpp - define integer arithmetic for all operands ---===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/AccessPredicate.h"
#include "lib/Transforms/Language/Iterations.h"
#include "lib/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-define-edge-cases"

namespace mlafix {
#define GEN_PASS_DEF_DEFINEEDGECASESPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

// MLIR's ops are undefined for some operands. LLVM then removes stores of the
// result and may take either side of a branch on it. Kernels compute with
// numbers from memory, so this pass defines a result for every operand, equal
// on all targets. It runs before any folding.

namespace {

using P = arith::CmpIPredicate;

/// Builds arithmetic on scalars or row tiles of one type.
class TotalBuilder {
public:
  TotalBuilder(OpBuilder &b, Location loc, Type type)
      : b(b), loc(loc), type(type) {}

  unsigned width() const {
    Type element = getElementTypeOrSelf(type);
    return element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  }
  Value constant(TypedAttr scalar) {
    Value value = arith::ConstantOp::create(b, loc, scalar);
    return isRowTile(type) ? Value(SplatOp::create(b, loc, type, value))
                           : value;
  }
  Value i(const APInt &value) {
    return constant(b.getIntegerAttr(getElementTypeOrSelf(type), value));
  }
  Value i(int64_t value) {
    return i(APInt(width(), value, /*isSigned=*/true, /*implicitTrunc=*/true));
  }
  Value f(const APFloat &value) {
    return constant(b.getFloatAttr(getElementTypeOrSelf(type), value));
  }
  Value compare(P predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, loc, predicate, x, y);
  }
  Value compare(arith::CmpFPredicate predicate, Value x, Value y) {
    return arith::CmpFOp::create(b, loc, predicate, x, y);
  }
  Value select(Value p, Value x, Value y) {
    return arith::SelectOp::create(b, loc, p, x, y);
  }
  template <typename OpTy> Value op(Value x, Value y) {
    return OpTy::create(b, loc, x, y);
  }

  OpBuilder &b;
  Location loc;

private:
  Type type;
};

} // namespace

/// Returns the value of a constant integer, or of all elements of a constant
/// row. Returns nullopt if the value is no such constant.
static std::optional<APInt> constantOf(Value value) {
  if (auto splat = value.getDefiningOp<SplatOp>())
    value = splat.getScalar();
  APInt constant;
  return matchPattern(value, m_ConstantInt(&constant)) ? std::optional(constant)
                                                       : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Shifts
//===----------------------------------------------------------------------===//

/// Builds a shift that is defined for every amount, taken as unsigned. An
/// amount of at least the width shifts out all bits: the result is zero, or
/// copies of the sign for `shrsi`. Returns null if `op` needs no change, since
/// the amount is a constant below the width.
template <typename OpTy> static Value buildShift(OpBuilder &b, OpTy op) {
  TotalBuilder t(b, op.getLoc(), op.getType());
  Value amount = op.getRhs();
  unsigned width = t.width();
  std::optional<APInt> constant = constantOf(amount);
  if (constant && constant->ult(width))
    return {};
  Value most = t.i(width - 1);
  Value shifted = t.op<OpTy>(op.getLhs(), t.op<arith::MinUIOp>(amount, most));
  if (std::is_same_v<OpTy, arith::ShRSIOp>)
    return shifted;
  Value fits = t.compare(P::ule, amount, most);
  return t.select(fits, shifted, t.i(0));
}

//===----------------------------------------------------------------------===//
// Division
//===----------------------------------------------------------------------===//

/// Returns true if MLIR's divisions may be undefined for `divisor`: it may be 0
/// or, if `isSigned` is true, -1.
static bool isOddDivisor(Value divisor, bool isSigned) {
  std::optional<APInt> constant = constantOf(divisor);
  return !constant || constant->isZero() || (isSigned && constant->isAllOnes());
}

/// Builds the divisor `b`, with 0 and -1 replaced by 1.
static Value signedDivisor(TotalBuilder t, Value b) {
  if (!isOddDivisor(b, /*isSigned=*/true))
    return b;
  Value isMinusOne = t.compare(P::eq, b, t.i(-1));
  Value isOdd = t.op<arith::OrIOp>(t.compare(P::eq, b, t.i(0)), isMinusOne);
  return t.select(isOdd, t.i(1), b);
}

static Value unsignedDivisor(TotalBuilder t, Value b) {
  if (!isOddDivisor(b, /*isSigned=*/false))
    return b;
  Value isZero = t.compare(P::eq, b, t.i(0));
  return t.select(isZero, t.i(1), b);
}

/// Builds the quotient. a / 0 is a, and the smallest integer divided by -1
/// wraps around.
static Value divideSigned(TotalBuilder t, Value a, Value b) {
  Value quotient = t.op<arith::DivSIOp>(a, signedDivisor(t, b));
  if (!isOddDivisor(b, /*isSigned=*/true))
    return quotient;
  Value negated = t.op<arith::SubIOp>(t.i(0), a);
  return t.select(t.compare(P::eq, b, t.i(-1)), negated, quotient);
}

/// Builds the remainder. a % 0 and a % -1 are 0.
static Value remainderSigned(TotalBuilder t, Value a, Value b) {
  return t.op<arith::RemSIOp>(a, signedDivisor(t, b));
}

template <typename OpTy> static Value buildDivision(OpBuilder &b, OpTy op) {
  TotalBuilder t(b, op.getLoc(), op.getType());
  Value lhs = op.getLhs(), rhs = op.getRhs();
  constexpr bool isQuotient = std::is_same_v<OpTy, arith::DivSIOp>;
  constexpr bool isSigned = isQuotient || std::is_same_v<OpTy, arith::RemSIOp>;
  if (!isOddDivisor(rhs, isSigned))
    return {};
  if (isSigned)
    return isQuotient ? divideSigned(t, lhs, rhs)
                      : remainderSigned(t, lhs, rhs);
  return t.op<OpTy>(lhs, unsignedDivisor(t, rhs));
}

/// Builds the quotient rounded down, or rounded up if `isUp` is true. It
/// differs by one from the truncated quotient if there is a remainder and the
/// exact quotient is negative (down) or positive (up).
static Value divideRounded(TotalBuilder t, Value a, Value b, bool isUp) {
  Value quotient = divideSigned(t, a, b);
  Value remainder = remainderSigned(t, a, b);
  Value zero = t.i(0);
  Value signs = t.op<arith::XOrIOp>(remainder, b);
  Value isCut = t.compare(isUp ? P::sge : P::slt, signs, zero);
  Value isOff = t.op<arith::AndIOp>(t.compare(P::ne, remainder, zero), isCut);
  Value next = t.op<arith::AddIOp>(quotient, t.i(isUp ? 1 : -1));
  return t.select(isOff, next, quotient);
}

static Value buildRoundedDivision(OpBuilder &b, Operation *op) {
  TotalBuilder t(b, op->getLoc(), op->getResult(0).getType());
  Value lhs = op->getOperand(0), rhs = op->getOperand(1);
  if (!isa<arith::CeilDivUIOp>(op))
    return divideRounded(t, lhs, rhs, isa<arith::CeilDivSIOp>(op));
  Value divisor = unsignedDivisor(t, rhs);
  Value quotient = t.op<arith::DivUIOp>(lhs, divisor);
  Value remainder = t.op<arith::RemUIOp>(lhs, divisor);
  Value next = t.op<arith::AddIOp>(quotient, t.i(1));
  return t.select(t.compare(P::ne, remainder, t.i(0)), next, quotient);
}

//===----------------------------------------------------------------------===//
// Floats to integers
//===----------------------------------------------------------------------===//

/// Builds a conversion that rounds toward zero and saturates. NaN becomes 0.
template <typename OpTy> static Value buildToInteger(OpBuilder &b, OpTy op) {
  using F = arith::CmpFPredicate;
  constexpr bool isSigned = std::is_same_v<OpTy, arith::FPToSIOp>;
  Value x = op.getIn();
  TotalBuilder from(b, op.getLoc(), x.getType()),
      to(b, op.getLoc(), op.getType());
  unsigned width = to.width();
  const llvm::fltSemantics &semantics =
      cast<FloatType>(getElementTypeOrSelf(x.getType())).getFloatSemantics();
  // The first floats beyond the range of integers, or infinity if the format
  // ends earlier.
  APFloat end(semantics), start(semantics, "-1");
  end.convertFromAPInt(APInt::getOneBitSet(width + 1, width - isSigned),
                       /*IsSigned=*/false, APFloat::rmTowardPositive);
  if (isSigned)
    start = neg(end); // The smallest integer, which saturation also yields.
  APInt largest = isSigned ? APInt::getSignedMaxValue(width)
                           : APInt::getMaxValue(width),
        smallest = isSigned ? APInt::getSignedMinValue(width) : APInt(width, 0);
  Value highest = from.f(end), lowest = from.f(start);
  Value isHigh = from.compare(F::OGE, x, highest);
  Value isLow = from.compare(F::OLE, x, lowest);
  Value isBelow = from.compare(F::OLT, x, highest);
  Value isAbove = from.compare(F::OGT, x, lowest);
  Value isInside = to.op<arith::AndIOp>(isBelow, isAbove);
  Value inside = from.select(isInside, x, from.f(APFloat::getZero(semantics)));
  Value whole = OpTy::create(b, op.getLoc(), op.getType(), inside);
  Value result = to.select(isLow, to.i(smallest), whole);
  return to.select(isHigh, to.i(largest), result);
}

//===----------------------------------------------------------------------===//
// Angles
//===----------------------------------------------------------------------===//

/// Builds the sine or cosine, which is NaN beyond 2^23. Neighbouring floats are
/// at least a radian apart there, and targets would compute meaningless values.
template <typename OpTy> static Value buildSine(OpBuilder &b, OpTy op) {
  using F = arith::CmpFPredicate;
  Value x = op.getOperand();
  TotalBuilder t(b, op.getLoc(), op.getType());
  Value isBelow = t.compare(F::OLE, x, t.f(APFloat(8388608.0f)));
  Value isAbove = t.compare(F::OGE, x, t.f(APFloat(-8388608.0f)));
  Value isIn = t.op<arith::AndIOp>(isBelow, isAbove);
  Value result = OpTy::create(b, op.getLoc(), x);
  return t.select(isIn, result, t.f(APFloat::getQNaN(APFloat::IEEEsingle())));
}

//===----------------------------------------------------------------------===//
// Minima and maxima
//===----------------------------------------------------------------------===//

/// Builds the minimum or maximum. The result for a number and NaN is the
/// number. MLIR leaves the order of zeros open; here -0.0 < 0.0.
template <typename ExactOpTy, typename OpTy>
static Value buildExtremum(OpBuilder &b, OpTy op) {
  using F = arith::CmpFPredicate;
  Value x = op.getLhs(), y = op.getRhs();
  TotalBuilder t(b, op.getLoc(), op.getType());
  Value first = t.select(t.compare(F::UNO, x, x), y, x);
  Value second = t.select(t.compare(F::UNO, y, y), x, y);
  return t.op<ExactOpTy>(first, second);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Drops flags that promise something about operands, since nothing checks
/// these promises. Drops fast-math flags as well: only passes may permit other
/// arithmetic, since N9 and N10 (docs/Dialect.md) apply to every op of a
/// kernel.
static void dropPromises(Operation *op) {
  if (auto integer = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op);
      integer &&
      integer.getOverflowAttr().getValue() != arith::IntegerOverflowFlags::none)
    op->setAttr(integer.getIntegerOverflowAttrName(),
                arith::IntegerOverflowFlagsAttr::get(
                    op->getContext(), arith::IntegerOverflowFlags::none));
  TypeSwitch<Operation *>(op)
      .Case<arith::DivSIOp, arith::DivUIOp, arith::ShRSIOp, arith::ShRUIOp>(
          [](auto exact) { exact.setIsExact(false); });
  auto real = dyn_cast<arith::ArithFastMathInterface>(op);
  // Stays null if the op has no flags, as some conversions do not.
  arith::FastMathFlagsAttr flags;
  if (real)
    flags = real.getFastMathFlagsAttr();
  if (flags && flags.getValue() != arith::FastMathFlags::none)
    op->setAttr(real.getFastMathAttrName(),
                arith::FastMathFlagsAttr::get(op->getContext(),
                                              arith::FastMathFlags::none));
}

/// Narrows an index by a cast to i64 and a truncation. After a single narrowing
/// cast, MLIR would fold a cast back to the original index, although bits were
/// dropped. Returns null for other casts.
static Value buildIndexCast(OpBuilder &b, arith::IndexCastOp cast) {
  Type to = cast.getType();
  if (!cast.getIn().getType().isIndex() || to.getIntOrFloatBitWidth() >= 64)
    return Value();
  Value wide = arith::IndexCastOp::create(b, cast.getLoc(), b.getI64Type(),
                                          cast.getIn());
  return arith::TruncIOp::create(b, cast.getLoc(), to, wide);
}

//===----------------------------------------------------------------------===//
// Rows of no elements
//===----------------------------------------------------------------------===//

/// Builds the sum of a row along a bounded dim, which may be empty. The sum of
/// an empty row must be 0, but the neutral element is -0. Returns null for
/// other reductions.
static Value buildSum(OpBuilder &b, ReduceOp op) {
  DimAttr dim = getTileDim(op.getSource().getType());
  if (!dim.isBounded() || op.getKind() != ReduceKind::add ||
      !op.getType().isF32())
    return {};
  Location loc = op.getLoc();
  TotalBuilder t(b, loc, op.getType());
  Value size = buildRowSize(b, loc, op->getParentOfType<KernelOp>(), dim);
  Value isEmpty =
      t.compare(P::eq, size, TotalBuilder(b, loc, b.getIndexType()).i(0));
  Value sum =
      ReduceOp::create(b, loc, op.getType(), op.getKind(), op.getSource());
  return t.select(isEmpty, t.f(APFloat(0.0f)), sum);
}

/// Builds the result of `op`, defined for all operands. Returns null if `op` is
/// defined for all operands already.
static Value buildTotal(OpBuilder &b, Operation *op) {
  return TypeSwitch<Operation *, Value>(op)
      .Case<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>(
          [&](auto shift) { return buildShift(b, shift); })
      .Case<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(
          [&](auto division) { return buildDivision(b, division); })
      .Case<arith::FloorDivSIOp, arith::CeilDivSIOp, arith::CeilDivUIOp>(
          [&](Operation *division) {
            return buildRoundedDivision(b, division);
          })
      .Case<arith::FPToSIOp, arith::FPToUIOp>(
          [&](auto conversion) { return buildToInteger(b, conversion); })
      .Case<math::SinOp, math::CosOp>(
          [&](auto function) { return buildSine(b, function); })
      .Case<arith::MinNumFOp>([&](auto minimum) {
        return buildExtremum<arith::MinimumFOp>(b, minimum);
      })
      .Case<arith::MaxNumFOp>([&](auto maximum) {
        return buildExtremum<arith::MaximumFOp>(b, maximum);
      })
      .Case<ReduceOp>([&](auto reduce) { return buildSum(b, reduce); })
      .Case<arith::IndexCastOp>(
          [&](auto cast) { return buildIndexCast(b, cast); })
      .Default([](Operation *) { return Value(); });
}

/// Makes a loop count its iterations, unless its step is 1 and its index has 64
/// bits and is signed. Otherwise the loop would not end if its index overflows.
/// MLIR would also remove a loop that has more iterations than the type of the
/// index has positive numbers.
static LogicalResult makeTotal(scf::ForOp loop) {
  std::optional<APInt> step = loop.getConstantStep();
  if (step && !step->isStrictlyPositive())
    return loop.emitOpError("expected a step of at least 1, got ")
           << step->getSExtValue();
  Type type = loop.getInductionVar().getType();
  bool isWide = type.isIndex() || type.isInteger(64);
  if (!isWide || !step || !step->isOne() || loop.getUnsignedCmp()) {
    LDBG() << loop.getLoc() << ": the loop counts its iterations";
    countIterations(loop);
  }
  return success();
}

namespace {
class DefineEdgeCasesPass
    : public mlafix::impl::DefineEdgeCasesPassBase<DefineEdgeCasesPass> {
public:
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops) {
      if (auto loop = dyn_cast<scf::ForOp>(op)) {
        if (failed(makeTotal(loop)))
          return signalPassFailure();
        continue;
      }
      dropPromises(op);
      OpBuilder b(op);
      if (Value total = buildTotal(b, op)) {
        LDBG() << "defined for all operands: " << *op;
        op->getResult(0).replaceAllUsesWith(total);
        op->erase();
      }
    }
  }
};
} // namespace
