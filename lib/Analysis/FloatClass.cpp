//===- FloatClass.cpp - classes of floats ---------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/FloatClass.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlafix;

using F = FloatClass;

FloatClass FloatClass::of(const APFloat &value) {
  if (value.isNaN())
    return NaN;
  bool isNegative = value.isNegative();
  if (value.isInfinity())
    return isNegative ? NegInf : Inf;
  if (value.isZero())
    return isNegative ? NegZero : Zero;
  return isNegative ? Neg : Pos;
}

StringRef mlafix::spelling(FloatClass value) {
  if (value.isWithin(F::Zeros))
    return "0";
  return value == F::NegInf ? "-inf" : value == F::Inf ? "inf" : "x";
}

//===----------------------------------------------------------------------===//
// Operations on single classes
//===----------------------------------------------------------------------===//

// The functions below take single classes, and return the set of classes that
// the result may be in.

static bool isNegative(unsigned a) {
  return a & (F::NegInf | F::Neg | F::NegZero);
}

/// Returns `magnitude` (Zero, Pos or Inf) or, if `negative`, the class of its
/// negative.
static unsigned withSign(bool negative, unsigned magnitude) {
  if (!negative)
    return magnitude;
  return magnitude == F::Zero  ? F::NegZero
         : magnitude == F::Pos ? F::Neg
                               : F::NegInf;
}

static unsigned negate(unsigned a) {
  if (a & F::NaN)
    return a;
  bool zero = a & F::Zeros, infinite = a & F::Infinite;
  return withSign(!isNegative(a), zero ? F::Zero : infinite ? F::Inf : F::Pos);
}

static unsigned magnitude(unsigned a) { return isNegative(a) ? negate(a) : a; }

static unsigned add(unsigned a, unsigned b) {
  if ((a | b) & F::NaN || (a | b) == F::Infinite)
    return F::NaN;
  if (a & F::Infinite || (b & F::Zeros && !(a & F::Zeros)))
    return a;
  if (b & F::Infinite || a & F::Zeros)
    return b & F::Zeros && a != b ? unsigned(F::Zero) : b;
  return a == b ? a : F::Neg | F::Zero | F::Pos;
}

static unsigned multiply(unsigned a, unsigned b) {
  if ((a | b) & F::NaN || (a & F::Zeros && b & F::Infinite) ||
      (a & F::Infinite && b & F::Zeros))
    return F::NaN;
  bool sign = isNegative(a) != isNegative(b);
  return withSign(sign, (a | b) & F::Infinite ? F::Inf
                        : (a | b) & F::Zeros  ? F::Zero
                                              : F::Pos);
}

static unsigned divide(unsigned a, unsigned b) {
  if ((a | b) & F::NaN || (a & F::Zeros && b & F::Zeros) ||
      (a & F::Infinite && b & F::Infinite))
    return F::NaN;
  bool sign = isNegative(a) != isNegative(b);
  if (a & F::Infinite || b & F::Zeros)
    return withSign(sign, F::Inf);
  return withSign(sign, a & F::Zeros || b & F::Infinite ? F::Zero : F::Pos);
}

static unsigned exponential(unsigned a) {
  switch (a) {
  case F::NaN:
  case F::Inf:
    return a;
  case F::NegInf:
    return F::Zero;
  case F::Neg:
    return F::Zero | F::Pos;
  default:
    return F::Pos;
  }
}

static unsigned logarithm(unsigned a) {
  if (a & (F::NaN | F::Inf))
    return a;
  if (a & F::Zeros)
    return F::NegInf;
  return a == F::Pos ? F::Neg | F::Zero | F::Pos : F::NaN;
}

static unsigned squareRoot(unsigned a) {
  return a & (F::Neg | F::NegInf) ? unsigned(F::NaN) : a;
}

static unsigned reciprocalRoot(unsigned a) {
  unsigned root = squareRoot(a);
  return root & F::NaN ? root : divide(F::Pos, root);
}

static unsigned hyperbolicTangent(unsigned a) {
  return a == F::Inf ? F::Pos : a == F::NegInf ? F::Neg : a;
}

static unsigned roundDown(unsigned a) { return a == F::Pos ? F::Zero | a : a; }
static unsigned roundUp(unsigned a) {
  return negate(a) == F::Pos ? F::NegZero | a : a;
}

/// Returns the position of a class in numeric order.
static int rank(unsigned a) {
  return a & F::Infinite ? (a == F::Inf ? 2 : -2)
         : a & F::Zeros  ? 0
         : a == F::Pos   ? 1
                         : -1;
}

static unsigned relateOne(unsigned a, unsigned b) {
  if ((a | b) & F::NaN)
    return Relation::Unordered;
  int x = rank(a), y = rank(b);
  if (x != y)
    return x < y ? Relation::Less : Relation::Greater;
  return x == 1 || x == -1 ? Relation::Ordered : Relation::Equal;
}

static unsigned maximum(unsigned a, unsigned b) {
  if ((a | b) & F::NaN)
    return F::NaN;
  return relateOne(a, b) & Relation::Less ? b : a;
}

static unsigned minimum(unsigned a, unsigned b) {
  if ((a | b) & F::NaN)
    return F::NaN;
  return relateOne(a, b) & Relation::Less ? a : b;
}

static unsigned copySign(unsigned a, unsigned b) {
  return isNegative(b) && !(a & F::NaN) ? negate(magnitude(a)) : magnitude(a);
}

//===----------------------------------------------------------------------===//
// Operations on sets of classes
//===----------------------------------------------------------------------===//

using Unary = unsigned (*)(unsigned);
using Binary = unsigned (*)(unsigned, unsigned);

/// Drops NaN from the set unless it is the only class.
static FloatClass settle(unsigned bits) {
  return bits & ~unsigned(F::NaN) ? bits & ~unsigned(F::NaN) : bits;
}

static FloatClass map(Unary function, FloatClass a) {
  unsigned result = 0;
  for (unsigned bit = 1; bit <= F::Inf; bit <<= 1)
    if (a.bits & bit)
      result |= function(bit);
  return settle(result);
}

static FloatClass map(Binary function, FloatClass a, FloatClass b) {
  unsigned result = 0;
  for (unsigned x = 1; x <= F::Inf; x <<= 1)
    for (unsigned y = 1; a.bits & x && y <= F::Inf; y <<= 1)
      if (b.bits & y)
        result |= function(x, y);
  return settle(result);
}

unsigned mlafix::relate(FloatClass a, FloatClass b) {
  unsigned result = 0;
  for (unsigned x = 1; x <= F::Inf; x <<= 1)
    for (unsigned y = 1; a.bits & x && y <= F::Inf; y <<= 1)
      if (b.bits & y)
        result |= relateOne(x, y);
  return result;
}

unsigned mlafix::swapRelation(unsigned relation) {
  unsigned same = relation & (Relation::Equal | Relation::Unordered);
  return same | (relation & Relation::Less ? Relation::Greater : 0) |
         (relation & Relation::Greater ? Relation::Less : 0);
}

unsigned mlafix::relationsOf(arith::CmpFPredicate predicate) {
  const APFloat zero(0.0), one(1.0),
      nan = APFloat::getNaN(APFloat::IEEEdouble());
  auto holds = [&](const APFloat &a, const APFloat &b) {
    return arith::applyCmpPredicate(predicate, a, b);
  };
  return (holds(zero, one) ? Relation::Less : 0) |
         (holds(one, one) ? Relation::Equal : 0) |
         (holds(one, zero) ? Relation::Greater : 0) |
         (holds(nan, one) ? Relation::Unordered : 0);
}

FloatClass mlafix::subtract(FloatClass a, FloatClass b, unsigned relation) {
  FloatClass difference = map(add, a, map(negate, b));
  if (difference.isNaN() || !a.isWithin(F::Finite) || !b.isWithin(F::Finite))
    return difference;
  unsigned possible = 0;
  if (relation & Relation::Less)
    possible |= F::Neg;
  if (relation & Relation::Equal)
    possible |= F::Zero;
  if (relation & Relation::Greater)
    possible |= F::Pos;
  return difference.bits & possible ? difference.bits & possible : possible;
}

FloatClass mlafix::apply(Operation *op, ArrayRef<FloatClass> operands) {
  FloatClass a = operands.front(), b = operands.back();
  return TypeSwitch<Operation *, FloatClass>(op)
      .Case<arith::NegFOp>([&](auto) { return map(negate, a); })
      .Case<math::AbsFOp>([&](auto) { return map(magnitude, a); })
      .Case<math::ExpOp, math::Exp2Op>(
          [&](auto) { return map(exponential, a); })
      .Case<math::LogOp, math::Log2Op, math::Log10Op>(
          [&](auto) { return map(logarithm, a); })
      .Case<math::SqrtOp>([&](auto) { return map(squareRoot, a); })
      .Case<math::RsqrtOp>([&](auto) { return map(reciprocalRoot, a); })
      .Case<math::TanhOp>([&](auto) { return map(hyperbolicTangent, a); })
      .Case<math::FloorOp>([&](auto) { return map(roundDown, a); })
      .Case<math::CeilOp>([&](auto) { return map(roundUp, a); })
      .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) { return a; })
      .Case<arith::AddFOp>([&](auto) { return map(add, a, b); })
      .Case<arith::SubFOp>(
          [&](auto) { return subtract(a, b, Relation::Ordered); })
      .Case<arith::MulFOp>([&](auto) { return map(multiply, a, b); })
      .Case<arith::DivFOp>([&](auto) { return map(divide, a, b); })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>(
          [&](auto) { return map(maximum, a, b); })
      .Case<arith::MinimumFOp, arith::MinNumFOp>(
          [&](auto) { return map(minimum, a, b); })
      .Case<math::CopySignOp>([&](auto) { return map(copySign, a, b); })
      .Case<math::FmaOp>([&](auto) {
        return map(add, map(multiply, a, operands[1]), operands[2]);
      })
      .Default([&](Operation *) {
        bool isNaN = llvm::any_of(operands, [](F x) { return x.isNaN(); });
        return FloatClass(isNaN ? F::NaN : F::Finite);
      });
}
