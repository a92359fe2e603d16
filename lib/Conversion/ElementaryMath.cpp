//===- ElementaryMath.cpp - functions that targets share ------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/ElementaryMath.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace mlafix;

using P = arith::CmpFPredicate;

/// e^x = 2^t * e^(x - t * ln(2)) for any t; with t the rounded product of x and
/// log2(e), the second factor is 1 plus a small number, which one fused
/// operation gives (Cody and Waite).
Value mlafix::buildExp(ShapedBuilder s, Value x, UnaryFn exp2) {
  // Below, e^x rounds to 0. NaN passes both comparisons.
  x = s.select(s.cmp(P::OLT, x, s.f(-105.0f)), s.f(-105.0f), x);
  Value exponent = s.op<arith::MulFOp>(x, s.f(llvm::numbers::log2ef));
  // The largest below 128: the second factor is what overflows.
  constexpr float kLargest = 0x1.fffffep+6f;
  exponent =
      s.select(s.cmp(P::OGT, exponent, s.f(kLargest)), s.f(kLargest), exponent);
  Value power = exp2(exponent);
  Value rest = s.fma(exponent, s.f(-llvm::numbers::ln2f), x);
  return s.fma(power, rest, power);
}

/// With x = m * 2^e, m in [sqrt(1/2), sqrt(2)) and t = (m - 1) / (m +
/// 1), log(m) = 2 atanh(t), the series up to t^11 (|t| < 0.172: relative error
/// 5e-9 before rounding). log2(1) is exactly 0.
Value mlafix::buildLog2(ShapedBuilder s, Value x, BinaryFn divide) {
  constexpr float kMinNormal = 1.17549435e-38f;
  Value isTiny = s.cmp(P::OLT, x, s.f(kMinNormal));
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
  result = s.select(s.cmp(P::OEQ, x, s.f(kInf)), s.f(kInf), result);
  result = s.select(s.cmp(P::OEQ, x, s.f(0.0f)), s.f(-kInf), result);
  return s.select(s.cmp(P::ULT, x, s.f(0.0f)),
                  s.f(std::numeric_limits<float>::quiet_NaN()), result);
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
  return s.select(s.cmp(P::UNO, x, x), quiet, rounded);
}

LogicalResult mlafix::checkRemainingMath(Operation *op) {
  if (!isa_and_nonnull<math::MathDialect>(op->getDialect()) ||
      isa<math::FmaOp, math::SqrtOp, math::AbsFOp, math::AbsIOp, math::FloorOp,
          math::CeilOp, math::CopySignOp, math::CountLeadingZerosOp,
          math::CtPopOp>(op))
    return success();
  return op->emitError()
         << "expected math.exp, exp2, log, log2, sqrt, rsqrt, fma, absf, "
            "absi, floor, ceil, copysign, ctlz or ctpop, got '"
         << op->getName() << "'";
}
