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
// below 2^-25, with their sign: fp8 narrows them to 0 of that sign, an integer
// is 0, and they are lost in a sum with a number of at least 1.
//
// Where more is left of quotients, s is in [2^-64, 2^20] and x is 0 or |x| at
// least 2^-100: then x / s is 0 or a normal number, and rest, a multiple of the
// product of the last places of q and s, one of 2^-149.
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/ElementaryMath.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Rows/RowReduce.h"
#include "lib/Transforms/ShapedBuilder.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-share-reciprocals"

namespace mlafix {
#define GEN_PASS_DEF_SHARERECIPROCALSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

static constexpr float kLeastDivisor = 0x1p-64f, kLargestDivisor = 0x1p64f,
                       kLargestDividend = 0x1p62f;
/// Limits if small quotients are visible.
static constexpr float kLargestExactDivisor = 0x1p20f,
                       kLeastExactDividend = 0x1p-100f;

/// True if `user` yields the same for all values of operand `value` with the
/// same sign and magnitude below 2^-25: it adds a number of at least 1, or
/// converts to an integer.
static bool hidesSmall(Operation *user, Value value) {
  if (isa<arith::AddFOp, arith::SubFOp>(user)) {
    APFloat number(0.0f);
    bool isLeft = user->getOperand(0) == value;
    return matchPattern(user->getOperand(isLeft ? 1 : 0),
                        m_ConstantFloat(&number)) &&
           abs(number) >= APFloat(1.0f);
  }
  // A NaN test.
  if (auto comparison = dyn_cast<arith::CmpFOp>(user))
    return comparison.getLhs() == comparison.getRhs();
  return isa<math::RoundEvenOp, arith::FPToSIOp, arith::FPToUIOp>(user);
}

/// True if all users of `value`, behind optional clamps, map magnitudes below
/// 2^-25 to 0: narrowing to fp8, or hidesSmall().
static bool isNarrowed(Value value) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (isa<arith::TruncFOp>(user))
      return isa<Float8E4M3FNType, Float8E5M2Type>(
          getElementTypeOrSelf(user->getResult(0)));
    if (isa<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
            arith::MinNumFOp>(user))
      return matchPattern(user->getOperand(1), m_Constant()) &&
             isNarrowed(user->getResult(0));
    return isa<arith::SelectOp>(user) ? isNarrowed(user->getResult(0))
                                      : hidesSmall(user, value);
  });
}

/// The common divisor of all elements of a pack; null if they differ.
static Value getSharedDivisor(arith::DivFOp op) {
  auto type = dyn_cast<VectorType>(op.getType());
  auto broadcast = op.getRhs().getDefiningOp<vector::BroadcastOp>();
  if (!type || type.getNumElements() < 2 || !type.getElementType().isF32() ||
      !broadcast || !broadcast.getSource().getType().isF32() ||
      op.getFastmath() != arith::FastMathFlags::none)
    return Value();
  return broadcast.getSource();
}

/// The largest magnitude per pack and over all packs, in the same trees as
/// reductions: if the divisor is a maximum of magnitudes, CSE reuses it.
/// Propagates NaN.
static Value buildLargest(OpBuilder &b, Location loc, ArrayRef<Value> packs) {
  SmallVector<Value> partials;
  for (Value pack : packs) {
    Value magnitudes = math::AbsFOp::create(b, loc, pack);
    SmallVector<Value> values;
    for (int64_t i = 0, n = cast<VectorType>(pack.getType()).getNumElements();
         i < n; ++i)
      values.push_back(vector::ExtractOp::create(b, loc, magnitudes, i));
    partials.push_back(reduceTree(b, loc, ReduceKind::max, std::move(values)));
  }
  return reduceTree(b, loc, ReduceKind::max, std::move(partials));
}

/// An i1: no element has a magnitude between 0 and kLeastExactDividend.
/// Compares bits less 1, which are greatest for 0. NaN passes.
static Value buildNoneIsSmall(OpBuilder &b, Location loc,
                              ArrayRef<Value> packs) {
  Value least;
  for (Value pack : packs) {
    ShapedBuilder s(b, loc, pack.getType());
    Value bits = s.bits(pack);
    if (!isa_and_nonnull<math::ExpOp, math::Exp2Op>(pack.getDefiningOp()))
      bits = s.op<arith::AndIOp>(bits, s.i(INT32_MAX));
    Value below = s.op<arith::SubIOp>(bits, s.i(1));
    for (int64_t i = 0, n = cast<VectorType>(pack.getType()).getNumElements();
         i < n; ++i) {
      Value element = vector::ExtractOp::create(b, loc, below, i);
      least = least ? arith::MinUIOp::create(b, loc, least, element) : element;
    }
  }
  ShapedBuilder s(b, loc, b.getF32Type());
  return s.cmp(arith::CmpIPredicate::uge, least,
               s.i(llvm::bit_cast<int32_t>(kLeastExactDividend) - 1));
}

namespace {
/// Divisions of packs in a block that share one branch.
class SharedDivisions {
public:
  SharedDivisions(arith::DivFOp op, Value divisor) { add(op, divisor); }

  void add(arith::DivFOp op, Value divisor) {
    ops.push_back(op);
    divisors.push_back(divisor);
    isExact |= !isNarrowed(op);
  }
  /// True if `op` can execute at the position of the first division.
  bool takes(arith::DivFOp op, Value divisor, DominanceInfo &order) const {
    return op->getBlock() == ops.front()->getBlock() &&
           order.properlyDominates(op.getLhs(), ops.front()) &&
           order.properlyDominates(divisor, ops.front());
  }
  /// True if this is faster; `fewest` elements are needed if quotients near 0
  /// must be checked.
  bool pays(int64_t fewest) const;
  void share();

private:
  Value buildInRange(OpBuilder &b, Location loc);
  SmallVector<Value> buildQuotients(OpBuilder &b, Location loc);
  SmallVector<Value> buildDivisions(OpBuilder &b, Location loc);

  SmallVector<arith::DivFOp> ops;
  SmallVector<Value> divisors; ///< one per division
  bool isExact = false;        ///< quotients near 0 matter
};
} // namespace

bool SharedDivisions::pays(int64_t fewest) const {
  int64_t elements = 0;
  for (arith::DivFOp op : ops)
    elements += cast<VectorType>(op.getType()).getNumElements();
  return !isExact || elements >= fewest;
}

Value SharedDivisions::buildInRange(OpBuilder &b, Location loc) {
  using F = arith::CmpFPredicate;
  SmallVector<Value> packs;
  for (arith::DivFOp op : ops)
    packs.push_back(op.getLhs());
  ShapedBuilder s(b, loc, b.getF32Type());
  Value holds =
      s.cmp(F::OLE, buildLargest(b, loc, packs), s.f(kLargestDividend));
  if (isExact)
    holds = s.op<arith::AndIOp>(holds, buildNoneIsSmall(b, loc, packs));
  for (Value divisor :
       llvm::SetVector<Value>(divisors.begin(), divisors.end())) {
    Value least = s.cmp(F::OGE, divisor, s.f(kLeastDivisor));
    Value largest = s.cmp(
        F::OLE, divisor, s.f(isExact ? kLargestExactDivisor : kLargestDivisor));
    holds = s.op<arith::AndIOp>(holds, s.op<arith::AndIOp>(least, largest));
  }
  return holds;
}

SmallVector<Value> SharedDivisions::buildQuotients(OpBuilder &b, Location loc) {
  llvm::DenseMap<Value, Value> reciprocals;
  SmallVector<Value> quotients;
  for (auto [op, divisor] : llvm::zip(ops, divisors)) {
    Value &reciprocal = reciprocals[divisor];
    if (!reciprocal)
      reciprocal =
          buildReciprocal(ShapedBuilder(b, loc, divisor.getType()), divisor,
                          buildNearReciprocal(b, loc, divisor));
    auto broadcast = [&, type = op.getType()](Value x) -> Value {
      return vector::BroadcastOp::create(b, loc, type, x);
    };
    Value factors = broadcast(reciprocal), all = broadcast(divisor);
    quotients.push_back(buildQuotient(ShapedBuilder(b, loc, op.getType()),
                                      op.getLhs(), all, factors));
  }
  return quotients;
}

SmallVector<Value> SharedDivisions::buildDivisions(OpBuilder &b, Location loc) {
  SmallVector<Value> quotients;
  for (auto [op, divisor] : llvm::zip(ops, divisors)) {
    Value all = vector::BroadcastOp::create(b, loc, op.getType(), divisor);
    quotients.push_back(
        arith::DivFOp::create(b, op.getLoc(), op.getLhs(), all));
  }
  return quotients;
}

void SharedDivisions::share() {
  LDBG() << ops.size() << " by reciprocals: " << ops.front();
  OpBuilder b(ops.front());
  Location loc = ops.front().getLoc();
  SmallVector<Type> types;
  for (arith::DivFOp op : ops)
    types.push_back(op.getType());
  Value isInRange = buildInRange(b, loc);
  auto branch =
      scf::IfOp::create(b, loc, types, isInRange, /*withElseRegion=*/true);
  OpBuilder fast = branch.getThenBodyBuilder(),
            slow = branch.getElseBodyBuilder();
  scf::YieldOp::create(fast, loc, buildQuotients(fast, loc));
  scf::YieldOp::create(slow, loc, buildDivisions(slow, loc));
  for (auto [op, quotient] : llvm::zip(ops, branch.getResults())) {
    op.replaceAllUsesWith(quotient);
    op.erase();
  }
}

namespace {
class ShareReciprocalsPass
    : public mlafix::impl::ShareReciprocalsPassBase<ShareReciprocalsPass> {
public:
  using ShareReciprocalsPassBase::ShareReciprocalsPassBase;
  void runOnOperation() override {
    auto &order = getAnalysis<DominanceInfo>();
    SmallVector<SharedDivisions> all;
    getOperation().walk([&](arith::DivFOp op) {
      Value divisor = getSharedDivisor(op);
      if (!divisor)
        return;
      auto *found = llvm::find_if(all, [&](const SharedDivisions &divisions) {
        return divisions.takes(op, divisor, order);
      });
      if (found == all.end())
        all.emplace_back(op, divisor);
      else
        found->add(op, divisor);
    });
    for (SharedDivisions &divisions : all)
      if (divisions.pays(fewest))
        divisions.share();
  }
};
} // namespace
