//===- ExpandMath.cpp - expands math and conversions on CPUs --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/Passes.h"
#include "lib/Transforms/ElementaryMath.h"
#include "lib/Transforms/ShapedBuilder.h"
#include "lib/Transforms/Target.h"

#include "llvm/Support/DebugLog.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

#define DEBUG_TYPE "mlafix-expand-math"

namespace mlafix {
#define GEN_PASS_DEF_EXPANDMATHPASS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

namespace {

using P = arith::CmpFPredicate;

/// Computes 2^x as 2^n * 2^f. Here n is the integer nearest to x, and f = x - n
/// is in [-1/2, 1/2]. A Taylor polynomial of degree 7 approximates 2^f
/// (relative error 7e-9 before rounding). 2^n is applied as two factors, so
/// that results below 2^-126 are rounded once. The result for 0 is exactly 1.
Value expandExp2(ShapedBuilder s, Value x) {
  // Outside [-151, 129], 2^x is inf or rounds to 0. For NaN, both comparisons
  // are false, so NaN stays NaN.
  x = s.select(s.cmp(P::OGT, x, s.f(129.0f)), s.f(129.0f), x);
  x = s.select(s.cmp(P::OLT, x, s.f(-151.0f)), s.f(-151.0f), x);
  // Adding 1.5 * 2^23 puts the nearest integer into the low bits of the sum.
  constexpr float kMagic = 12582912.0f;
  Value shifted = s.op<arith::AddFOp>(x, s.f(kMagic));
  Value n = s.op<arith::SubIOp>(s.bits(shifted),
                                s.i(llvm::bit_cast<uint32_t>(kMagic)));
  Value fraction =
      s.op<arith::SubFOp>(x, s.op<arith::SubFOp>(shifted, s.f(kMagic)));

  constexpr int kDegree = 7;
  double coefficients[kDegree + 1] = {1.0};
  for (int k = 1; k <= kDegree; ++k)
    coefficients[k] = coefficients[k - 1] * llvm::numbers::ln2 / k;
  Value p = s.f(static_cast<float>(coefficients[kDegree]));
  for (int k = kDegree - 1; k >= 0; --k)
    p = s.fma(p, fraction, s.f(static_cast<float>(coefficients[k])));

  Value half = s.op<arith::ShRSIOp>(n, s.i(1));
  auto power = [&](Value exponent) {
    return s.floatOf(
        s.op<arith::ShLIOp>(s.op<arith::AddIOp>(exponent, s.i(127)), s.i(23)));
  };
  Value rest = power(s.op<arith::SubIOp>(n, half));
  return s.op<arith::MulFOp>(s.op<arith::MulFOp>(p, power(half)), rest);
}

Value truncateBF16(ShapedBuilder s, Value x, Type type) {
  Value upper = arith::TruncIOp::create(
      s.b, s.loc, s.i16(), s.op<arith::ShRUIOp>(roundToBF16(s, x), s.i(16)));
  return arith::BitcastOp::create(s.b, s.loc, type, upper);
}

/// Extends f16 to f32. A multiplication by 2^112 adjusts the exponent. The
/// product is exact, for subnormals as well.
Value extendF16(ShapedBuilder s, Value x) {
  Value half = arith::ExtUIOp::create(
      s.b, s.loc, s.i32(), arith::BitcastOp::create(s.b, s.loc, s.i16(), x));
  Value sign =
      s.op<arith::ShLIOp>(s.op<arith::AndIOp>(half, s.i(0x8000)), s.i(16));
  Value magnitude = s.op<arith::AndIOp>(half, s.i(0x7fff));
  Value shifted = s.op<arith::ShLIOp>(magnitude, s.i(13));
  Value finite = s.bits(
      s.op<arith::MulFOp>(s.floatOf(shifted), s.f(std::ldexp(1.0f, 112))));
  Value special = s.op<arith::OrIOp>(shifted, s.i(0x7f800000));
  Value isSpecial = s.cmp(arith::CmpIPredicate::uge, magnitude, s.i(0x7c00));
  return s.floatOf(
      s.op<arith::OrIOp>(sign, s.select(isSpecial, special, finite)));
}

/// Truncates f32 to f16, rounding to nearest even. Results below 2^-14 are
/// multiples of 2^-24. Adding 1/2 rounds to such a multiple, because the last
/// fraction bit of 1/2 in f32 is 2^-24.
Value truncateF16(ShapedBuilder s, Value x, Type type) {
  using I = arith::CmpIPredicate;
  Value bits = s.bits(x);
  Value sign =
      s.op<arith::AndIOp>(s.op<arith::ShRUIOp>(bits, s.i(16)), s.i(0x8000));
  Value magnitude = s.op<arith::AndIOp>(bits, s.i(0x7fffffff));
  Value odd =
      s.op<arith::AndIOp>(s.op<arith::ShRUIOp>(magnitude, s.i(13)), s.i(1));
  Value rounded =
      s.op<arith::AddIOp>(magnitude, s.op<arith::AddIOp>(odd, s.i(0xfff)));
  Value normal = s.op<arith::ShRUIOp>(
      s.op<arith::SubIOp>(rounded, s.i(112 << 23)), s.i(13));
  Value subnormal = s.op<arith::SubIOp>(
      s.bits(s.op<arith::AddFOp>(s.floatOf(magnitude), s.f(0.5f))),
      s.i(0x3f000000));
  Value result =
      s.select(s.cmp(I::ult, magnitude, s.i(0x38800000)), subnormal, normal);
  result = s.select(s.cmp(I::uge, magnitude, s.i(0x477ff000)), s.i(0x7c00),
                    result); // 65520 and above become inf
  result =
      s.select(s.cmp(I::ugt, magnitude, s.i(0x7f800000)), s.i(0x7e00), result);
  Value half = arith::TruncIOp::create(s.b, s.loc, s.i16(),
                                       s.op<arith::OrIOp>(sign, result));
  return arith::BitcastOp::create(s.b, s.loc, type, half);
}

/// Computes a * b + c. The product is exact in f64. The sum is rounded to f64,
/// then to f32.
Value expandFma(ShapedBuilder s, math::FmaOp op) {
  Type f64 = s.typeOf(s.b.getF64Type());
  auto wide = [&](Value x) -> Value {
    return arith::ExtFOp::create(s.b, s.loc, f64, x);
  };
  Value b = wide(op.getB()), a = wide(op.getA());
  Value product = s.op<arith::MulFOp>(a, b);
  return arith::TruncFOp::create(s.b, s.loc, s.f32(),
                                 s.op<arith::AddFOp>(product, wide(op.getC())));
}

/// Computes floor, ceil, trunc or roundeven. Numbers of magnitude 2^23 and more
/// have no fraction and stay. For a smaller number, roundeven adds and
/// subtracts 2^23. The other functions convert the number to an integer and
/// back; floor and ceil correct the result by 1 where it is on the wrong side.
Value expandRound(ShapedBuilder s, Value x, Operation *op) {
  Value magnitude = s.floatOf(s.op<arith::AndIOp>(s.bits(x), s.i(0x7fffffff)));
  Value rounded;
  if (isa<math::RoundEvenOp>(op)) {
    rounded = s.op<arith::SubFOp>(
        s.op<arith::AddFOp>(magnitude, s.f(8388608.0f)), s.f(8388608.0f));
  } else {
    rounded = arith::SIToFPOp::create(
        s.b, s.loc, s.f32(), arith::FPToSIOp::create(s.b, s.loc, s.i32(), x));
  }
  if (isa<math::FloorOp, math::CeilOp>(op)) {
    bool up = isa<math::CeilOp>(op);
    Value off = s.cmp(up ? P::OLT : P::OGT, rounded, x);
    Value next = s.op<arith::AddFOp>(rounded, s.f(up ? 1.0f : -1.0f));
    rounded = s.select(off, next, rounded);
  }
  Value sign = s.op<arith::AndIOp>(s.bits(x), s.i(0x80000000));
  rounded =
      s.floatOf(s.op<arith::OrIOp>(s.bits(rounded), sign)); // -0.3 becomes -0
  return s.select(s.cmp(P::OLT, magnitude, s.f(8388608.0f)), rounded, x);
}

/// Returns the expansion of `op`, or null if the op stays.
Value expand(OpBuilder &b, Operation *op, bool writesOut) {
  if (op->getNumResults() != 1 || op->getNumOperands() == 0)
    return {};
  Value x = op->getOperand(0);
  ShapedBuilder s(b, op->getLoc(), x.getType());
  Type from = getElementTypeOrSelf(x.getType()),
       result = op->getResult(0).getType(), to = getElementTypeOrSelf(result);
  if (isa<arith::ExtFOp>(op) && from.isBF16())
    return extendBF16(s, x);
  if (isa<arith::TruncFOp>(op) && to.isBF16())
    return truncateBF16(s, x, result);
  if (isa<math::Exp2Op>(op))
    return expandExp2(s, x);
  if (isa<math::ExpOp>(op))
    return buildExp(s, x, [&](Value v) { return expandExp2(s, v); });
  if (isa<math::Log2Op, math::LogOp>(op)) {
    Value result = buildLog2(
        s, x, [&](Value a, Value b) { return s.op<arith::DivFOp>(a, b); });
    return isa<math::LogOp>(op)
               ? s.op<arith::MulFOp>(result, s.f(llvm::numbers::ln2f))
               : result;
  }
  if (isa<math::SinOp, math::CosOp>(op))
    return buildSine(s, x, isa<math::CosOp>(op));
  if (isa<math::ErfOp>(op))
    return buildErf(s, x, [&](Value v) { return expandExp2(s, v); });
  if (isa<math::TanhOp>(op))
    return buildTanh(
        s, x, [&](Value v) { return expandExp2(s, v); },
        [&](Value v) { return s.op<arith::DivFOp>(s.f(1.0f), v); });
  if (isa<math::RsqrtOp>(op))
    return s.op<arith::DivFOp>(s.f(1.0f),
                               math::SqrtOp::create(b, op->getLoc(), x));
  if (!writesOut)
    return {};
  if (isa<arith::ExtFOp>(op) && from.isF16())
    return extendF16(s, x);
  if (isa<arith::TruncFOp>(op) && to.isF16())
    return truncateF16(s, x, result);
  if (isa<math::FloorOp, math::CeilOp, math::RoundEvenOp, math::TruncOp>(op))
    return expandRound(s, x, op);
  return {};
}
} // namespace

static LogicalResult expandMath(LLVM::LLVMFuncOp function, bool writesOut) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops) {
    // Remove fast-math flags. With them, LLVM would divide vectors, but not
    // scalars, by a reciprocal estimate. The bits of a row would then depend on
    // whether it is computed together with other rows, which N9 excludes.
    if (auto division = dyn_cast<arith::DivFOp>(op))
      division.setFastmath(arith::FastMathFlags::none);
    OpBuilder b(op);
    if (Value replacement = expand(b, op, writesOut)) {
      LDBG() << "expands " << *op;
      op->getResult(0).replaceAllUsesWith(replacement);
      op->erase();
      continue;
    }
    if (failed(checkRemainingMath(op)))
      return failure();
  }
  return success();
}

static void expandFmas(LLVM::LLVMFuncOp function) {
  SmallVector<math::FmaOp> fmas;
  function.walk([&](math::FmaOp op) { fmas.push_back(op); });
  for (math::FmaOp op : fmas) {
    OpBuilder b(op);
    op.getResult().replaceAllUsesWith(
        expandFma(ShapedBuilder(b, op.getLoc(), op.getType()), op));
    op.erase();
  }
}

namespace {
class ExpandMathPass : public mlafix::impl::ExpandMathPassBase<ExpandMathPass> {
public:
  void runOnOperation() override {
    bool writesOut = getMachine(getOperation()).fusedMath == 0;
    if (failed(expandMath(getOperation(), writesOut)))
      return signalPassFailure();
    if (writesOut)
      expandFmas(getOperation());
  }
};
} // namespace
