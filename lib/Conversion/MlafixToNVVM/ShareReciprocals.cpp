//===- ShareReciprocals.cpp - one reciprocal for the division of a pack ---===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// With r the reciprocal of s rounded to nearest, and q = x * r rounded,
//
//   rest = q * s - x, which f32 holds exactly, and q' = q - rest * r, rounded
//
// is x / s rounded to nearest, for all significands of x and s. q is off by
// less than 1.5 units in the last place, so what is rounded in the end by
// 1.5 * 2^-24 of one; and no quotient whose rounding that could change is
// rounded otherwise: test/unittests/Target/ReciprocalTest.cpp goes through all
// of them. (Markstein, "Computation of elementary functions on the IBM RISC
// System/6000 processor", IBM J. Res. Dev. 34, 1990, proves it of a q within
// one unit.) Nothing overflows where s is in [2^-64, 2^64] and |x| up to 2^62;
// and rest is exact where |x / s| is 2^-26 or more. Smaller quotients come out
// below 2^-25, with their sign, which fp8 narrows to 0 of that sign.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/Passes.h"
#include "lib/Conversion/ShapedBuilder.h"
#include "lib/Transforms/RowReduce.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-share-reciprocals"

namespace mlafix {
#define GEN_PASS_DEF_SHARERECIPROCALSPASS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

static constexpr float kLeastDivisor = 0x1p-64f, kLargestDivisor = 0x1p64f,
                       kLargestDividend = 0x1p62f;

/// Whether nothing is left of `value` but fp8, which has no number between 0
/// and 2^-17 but 0; bounds may come before.
static bool isNarrowed(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    if (isa<arith::TruncFOp>(user))
      return isa<Float8E4M3FNType, Float8E5M2Type>(
          getElementTypeOrSelf(user->getResult(0)));
    return isa<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
               arith::MinNumFOp>(user) &&
           matchPattern(user->getOperand(1), m_Constant()) &&
           isNarrowed(user->getResult(0));
  });
}

/// The number that the elements of a pack are all divided by; null where they
/// are not, or where the quotients are used for more than fp8.
static Value getSharedDivisor(arith::DivFOp op) {
  auto type = dyn_cast<VectorType>(op.getType());
  auto broadcast = op.getRhs().getDefiningOp<vector::BroadcastOp>();
  if (!type || type.getNumElements() < 2 || !type.getElementType().isF32() ||
      !broadcast || !broadcast.getSource().getType().isF32() ||
      op.getFastmath() != arith::FastMathFlags::none || !isNarrowed(op))
    return Value();
  return broadcast.getSource();
}

/// The largest magnitude in pack `x`, by the tree that reduces a pack: where
/// the divisor came of a maximum of magnitudes, this is known already. NaN
/// stays NaN.
static Value buildLargest(OpBuilder &b, Location loc, Value x) {
  Value magnitudes = math::AbsFOp::create(b, loc, x);
  SmallVector<Value> values;
  for (int64_t i = 0, n = cast<VectorType>(x.getType()).getNumElements(); i < n;
       ++i)
    values.push_back(vector::ExtractOp::create(b, loc, magnitudes, i));
  return reduceTree(b, loc, ReduceKind::max, std::move(values));
}

static Value buildInRange(OpBuilder &b, Location loc, Value x, Value divisor) {
  using F = arith::CmpFPredicate;
  ShapedBuilder s(b, loc, divisor.getType());
  Value least = s.cmp(F::OGE, divisor, s.f(kLeastDivisor));
  Value largest = s.cmp(F::OLE, divisor, s.f(kLargestDivisor));
  Value dividends =
      s.cmp(F::OLE, buildLargest(b, loc, x), s.f(kLargestDividend));
  return s.op<arith::AndIOp>(s.op<arith::AndIOp>(least, largest), dividends);
}

/// The signs of the rest and of the reciprocal are such that a quotient of 0
/// keeps its own.
static Value buildQuotients(OpBuilder &b, Location loc, arith::DivFOp op,
                            Value divisor) {
  Value one = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(1.0f));
  Value reciprocal = arith::DivFOp::create(b, loc, one, divisor);
  Value factors = vector::BroadcastOp::create(b, loc, op.getType(), reciprocal);
  ShapedBuilder s(b, loc, op.getType());
  Value near = s.op<arith::MulFOp>(op.getLhs(), factors);
  Value minusX = arith::NegFOp::create(b, loc, op.getLhs());
  Value rest = s.fma(near, op.getRhs(), minusX);
  return s.fma(rest, arith::NegFOp::create(b, loc, factors), near);
}

static void share(arith::DivFOp op, Value divisor) {
  LDBG() << "by a reciprocal: " << op;
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value isInRange = buildInRange(b, loc, op.getLhs(), divisor);
  auto branch = scf::IfOp::create(b, loc, op.getType(), isInRange,
                                  /*withElseRegion=*/true);
  OpBuilder fast = branch.getThenBodyBuilder(),
            slow = branch.getElseBodyBuilder();
  scf::YieldOp::create(fast, loc, buildQuotients(fast, loc, op, divisor));
  Value quotients = slow.clone(*op)->getResult(0);
  scf::YieldOp::create(slow, loc, quotients);
  op.replaceAllUsesWith(branch.getResult(0));
  op.erase();
}

namespace {
class ShareReciprocalsPass
    : public mlafix::impl::ShareReciprocalsPassBase<ShareReciprocalsPass> {
public:
  void runOnOperation() override {
    SmallVector<arith::DivFOp> divisions;
    getOperation().walk([&](arith::DivFOp op) { divisions.push_back(op); });
    for (arith::DivFOp op : divisions)
      if (Value divisor = getSharedDivisor(op))
        share(op, divisor);
  }
};
} // namespace
