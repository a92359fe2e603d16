//===- ElementaryMath.cpp - functions that all targets share --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/ElementaryMath.h"

#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace mlafix;

using CmpF = arith::CmpFPredicate;

/// For any t, e^x = 2^t * e^(x - t * ln(2)). Here t is x * log2(e), rounded.
/// The second factor is then 1 plus a small number, and one fma multiplies by
/// it (Cody and Waite).
Value mlafix::buildExp(ShapedBuilder s, Value x, UnaryFn exp2) {
  // Below -105, e^x rounds to 0. For NaN, this comparison and the next are
  // false, so NaN stays NaN.
  x = s.select(s.cmp(CmpF::OLT, x, s.f(-105.0f)), s.f(-105.0f), x);
  Value exponent = s.op<arith::MulFOp>(x, s.f(llvm::numbers::log2ef));
  // The largest number below 128. 2^t is finite up to this t, so only the
  // multiplication by the second factor can overflow.
  constexpr float kLargest = 0x1.fffffep+6f;
  exponent = s.select(s.cmp(CmpF::OGT, exponent, s.f(kLargest)), s.f(kLargest),
                      exponent);
  Value power = exp2(exponent);
  Value rest = s.fma(exponent, s.f(-llvm::numbers::ln2f), x);
  return s.fma(power, rest, power);
}

Value mlafix::buildReciprocal(ShapedBuilder s, Value x, Value near) {
  Value rest = s.fma(x, near, s.f(-1.0f));
  return s.fma(near, arith::NegFOp::create(s.b, s.loc, rest), near);
}

/// Adds the remainder near * divisor - x, times -reciprocal, to `near`. (To add
/// x - near * divisor, times reciprocal, would turn a quotient of -0 into +0.)
Value mlafix::buildQuotient(ShapedBuilder s, Value x, Value divisor,
                            Value reciprocal) {
  Value near = s.op<arith::MulFOp>(x, reciprocal);
  Value minusX = arith::NegFOp::create(s.b, s.loc, x);
  Value rest = s.fma(near, divisor, minusX);
  return s.fma(rest, arith::NegFOp::create(s.b, s.loc, reciprocal), near);
}

/// Let x = m * 2^e with m in [sqrt(1/2), sqrt(2)), and t = (m - 1) / (m + 1).
/// Then log(m) = 2 atanh(t). The series up to t^11 has a relative error of 5e-9
/// before rounding, since |t| < 0.172. log2(1) is exactly 0.
Value mlafix::buildLog2(ShapedBuilder s, Value x, BinaryFn divide) {
  constexpr float kMinNormal = 1.17549435e-38f;
  Value isTiny = s.cmp(CmpF::OLT, x, s.f(kMinNormal));
  Value scaled =
      s.select(isTiny, s.op<arith::MulFOp>(x, s.f(8388608.0f)), x); // 2^23
  Value bits = s.bits(scaled);
  constexpr uint32_t kSqrtHalf = 0x3f3504f3;
  Value e =
      s.op<arith::ShRSIOp>(s.op<arith::SubIOp>(bits, s.i(kSqrtHalf)), s.i(23));
  Value m =
      s.floatOf(s.op<arith::SubIOp>(bits, s.op<arith::ShLIOp>(e, s.i(23))));
  Value exponent = arith::SIToFPOp::create(s.b, s.loc, s.f32(), e);
  exponent =
      s.op<arith::SubFOp>(exponent, s.select(isTiny, s.f(23.0f), s.f(0.0f)));

  Value less = s.op<arith::SubFOp>(m, s.f(1.0f));
  Value t = divide(less, s.op<arith::AddFOp>(m, s.f(1.0f)));
  Value square = s.op<arith::MulFOp>(t, t);
  Value p = s.f(static_cast<float>(2.0 / llvm::numbers::ln2 / 11));
  for (int k = 9; k >= 1; k -= 2)
    p = s.fma(p, square, s.f(static_cast<float>(2.0 / llvm::numbers::ln2 / k)));
  Value result = s.fma(p, t, exponent);

  constexpr float kInf = std::numeric_limits<float>::infinity();
  result = s.select(s.cmp(CmpF::OEQ, x, s.f(kInf)), s.f(kInf), result);
  result = s.select(s.cmp(CmpF::OEQ, x, s.f(0.0f)), s.f(-kInf), result);
  return s.select(s.cmp(CmpF::ULT, x, s.f(0.0f)),
                  s.f(std::numeric_limits<float>::quiet_NaN()), result);
}

/// Evaluates a polynomial. The highest coefficient comes first.
static Value buildPolynomial(ShapedBuilder s, Value x,
                             llvm::ArrayRef<float> coefficients) {
  Value sum = s.f(coefficients.front());
  for (float coefficient : coefficients.drop_front())
    sum = s.fma(sum, x, s.f(coefficient));
  return sum;
}

/// Let n be the integer nearest to |x| / (pi / 2), or its neighbour if x is
/// large. Then r = |x| - n * pi / 2 is within 1.2. r is computed with pi / 2
/// split into two parts (Cody and Waite). sin(r) and cos(r) are Taylor
/// polynomials, with an absolute error of 2e-9 before rounding. n selects one
/// of the two polynomials, and the sign of the result.
Value mlafix::buildSine(ShapedBuilder s, Value x, bool isCosine) {
  Value sign = s.op<arith::AndIOp>(s.bits(x), s.i(0x80000000));
  Value magnitude = s.floatOf(s.op<arith::AndIOp>(s.bits(x), s.i(0x7fffffff)));
  // Adding 2^23 puts the nearest integer into the low bits of the sum.
  constexpr float kMagic = 8388608.0f;
  Value shifted = s.fma(magnitude, s.f(0.636619747f /* 2 / pi */), s.f(kMagic));
  Value quarters = s.op<arith::AddIOp>(s.bits(shifted), s.i(isCosine ? 1 : 0));
  Value n = s.op<arith::SubFOp>(shifted, s.f(kMagic));
  Value r = magnitude;
  for (float part : {-0x1.921fb6p+0f, 0x1.777a5cp-25f})
    r = s.fma(n, s.f(part), r);

  Value square = s.op<arith::MulFOp>(r, r);
  Value odd = buildPolynomial(
      s, square,
      {-1.0f / 39916800, 1.0f / 362880, -1.0f / 5040, 1.0f / 120, -1.0f / 6});
  Value sine = s.fma(s.op<arith::MulFOp>(r, square), odd, r);
  Value cosine =
      buildPolynomial(s, square,
                      {1.0f / 479001600, -1.0f / 3628800, 1.0f / 40320,
                       -1.0f / 720, 1.0f / 24, -0.5f, 1.0f});
  Value isOdd = s.cmp(arith::CmpIPredicate::ne,
                      s.op<arith::AndIOp>(quarters, s.i(1)), s.i(0));
  Value result = s.bits(s.select(isOdd, cosine, sine));
  Value half =
      s.op<arith::ShLIOp>(s.op<arith::AndIOp>(quarters, s.i(2)), s.i(30));
  result = s.op<arith::XOrIOp>(result, half);
  return s.floatOf(isCosine ? result : s.op<arith::XOrIOp>(result, sign));
}

/// For |x| below 1, erf(x) is x times a polynomial in x^2. For |x| from 1 on,
/// it is 1 - 2^-p with the sign of x, where p is a polynomial for
/// -log2(erfc(|x|)). |x| is limited to 4, where erf rounds to 1. The
/// coefficients minimise the relative error of erf (Lawson's algorithm; 2e-9
/// before rounding).
Value mlafix::buildErf(ShapedBuilder s, Value x, UnaryFn exp2) {
  Value sign = s.op<arith::AndIOp>(s.bits(x), s.i(0x80000000));
  Value size = s.floatOf(s.op<arith::AndIOp>(s.bits(x), s.i(0x7fffffff)));
  size = s.select(s.cmp(CmpF::OGT, size, s.f(4.0f)), s.f(4.0f), size);
  Value small = buildPolynomial(s, s.op<arith::MulFOp>(size, size),
                                {7.853857823647559e-05f,
                                 -0.0008010192541405559f, 0.005188327748328447f,
                                 -0.026853810995817184f, 0.1128358542919159f,
                                 -0.3761262595653534f, 1.1283791065216064f});
  small = s.op<arith::MulFOp>(small, size);
  Value power = buildPolynomial(s, size,
                                {-0.0002688896202016622f, 0.004252584185451269f,
                                 -0.03150571510195732f, 0.14875170588493347f,
                                 0.9206482768058777f, 1.626046061515808f,
                                 0.0004926985129714012f});
  Value large = s.op<arith::SubFOp>(
      s.f(1.0f), exp2(s.op<arith::SubFOp>(s.f(0.0f), power)));
  Value result = s.select(s.cmp(CmpF::OGE, size, s.f(1.0f)), large, small);
  return s.floatOf(s.op<arith::OrIOp>(s.bits(result), sign));
}

/// tanh(x) is 1 - 2 / (1 + e^(2 |x|)) with the sign of x. Near 0, the
/// difference would have few correct digits. So for |x| below 0.4, |x| times a
/// polynomial in x^2 replaces it. The coefficients minimise the relative error
/// for these x (1.2e-7 before rounding).
Value mlafix::buildTanh(ShapedBuilder s, Value x, UnaryFn exp2,
                        UnaryFn reciprocal) {
  constexpr float kMostSmall = 0.4f;
  Value size = math::AbsFOp::create(s.b, s.loc, x);
  Value power = exp2(s.op<arith::MulFOp>(size, s.f(2 * llvm::numbers::log2ef)));
  Value large = s.fma(reciprocal(s.op<arith::AddFOp>(power, s.f(1.0f))),
                      s.f(-2.0f), s.f(1.0f));
  Value square = s.op<arith::MulFOp>(size, size);
  Value more = buildPolynomial(
      s, square,
      {-0.047794144600629807f, 0.13277627527713776f, -0.333318829536438f});
  Value small = s.fma(s.op<arith::MulFOp>(size, square), more, size);
  Value isSmall = s.cmp(CmpF::OLT, size, s.f(kMostSmall));
  return s.op<math::CopySignOp>(s.select(isSmall, small, large), x);
}

bool mlafix::isConstantNumber(Value value, double number) {
  APFloat real(0.0f);
  APInt integer;
  if (matchPattern(value, m_ConstantFloat(&real)))
    return real.convertToDouble() == number;
  return matchPattern(value, m_ConstantInt(&integer)) &&
         static_cast<double>(integer.getSExtValue()) == number;
}

Value mlafix::extendBF16(ShapedBuilder s, Value x) {
  Value bits = arith::ExtUIOp::create(
      s.b, s.loc, s.i32(), arith::BitcastOp::create(s.b, s.loc, s.i16(), x));
  return s.floatOf(s.op<arith::ShLIOp>(bits, s.i(16)));
}

Value mlafix::roundToBF16(ShapedBuilder s, Value x) {
  Value bits = s.bits(x);
  Value odd = s.op<arith::AndIOp>(s.op<arith::ShRUIOp>(bits, s.i(16)), s.i(1));
  Value rounded =
      s.op<arith::AddIOp>(bits, s.op<arith::AddIOp>(odd, s.i(0x7fff)));
  Value quiet = s.op<arith::OrIOp>(bits, s.i(0x400000));
  return s.select(s.cmp(CmpF::UNO, x, x), quiet, rounded);
}

LogicalResult mlafix::checkRemainingMath(Operation *op) {
  if (!isa_and_nonnull<math::MathDialect>(op->getDialect()) ||
      isa<math::FmaOp, math::SqrtOp, math::AbsFOp, math::AbsIOp, math::FloorOp,
          math::CeilOp, math::RoundEvenOp, math::TruncOp, math::CopySignOp,
          math::CountLeadingZerosOp, math::CtPopOp>(op))
    return success();
  return op->emitError()
         << "expected math.exp, exp2, log, log2, sqrt, rsqrt, sin, cos, erf, "
            "tanh, fma, absf, absi, floor, ceil, roundeven, trunc, copysign, "
            "ctlz or "
            "ctpop, got '"
         << op->getName() << "'";
}
