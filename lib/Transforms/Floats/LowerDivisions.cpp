//===- LowerDivisions.cpp - replace divisions by products -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/ElementaryMath.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Rows/RowReduce.h"
#include "lib/Transforms/ShapedBuilder.h"
#include "lib/Transforms/Target.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"

#include <cmath>
#include <limits>

#define DEBUG_TYPE "mlafix-lower-divisions"

namespace mlafix {
#define GEN_PASS_DEF_LOWERDIVISIONSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// Returns true for divisions of f32, scalar or vector, that must be correctly
/// rounded.
static bool isExactDivision(arith::DivFOp op) {
  return getElementTypeOrSelf(op.getType()).isF32() &&
         op.getFastmath() == arith::FastMathFlags::none;
}

//===----------------------------------------------------------------------===//
// Divisors that are known, or nearly so
//
// A division becomes a product for three kinds of divisors. The first kind is a
// number of type f8E8M0FNU, which is a power of two from 2^-127 to 2^127. The
// quotient is the dividend times the inverse of the divisor. The inverse is a
// power of two in this range, too.
//
// The second kind is a constant c = m * 2^e with an odd m below 2^20. Let h be
// the largest f32 that is not above 1 / c, and l the f32 nearest to 1 / c - h.
// Then
//
//   fma(x, h, x * l)
//
// is x / c rounded to nearest. Proof: h + l differs from 1 / c by less than
// 2^-47 of 1 / c, and the rounding of x * l adds a smaller error. Together the
// error is below 2^-22 units in the last place of the quotient. In these units
// the quotient is X * 2^s / m, with a significand X. Its distance from a number
// halfway between two floats is 0 or at least 1 / (2 m), which is more than the
// error. The distance is not 0: m would then divide X, so the quotient would
// have no more digits than X, but a number halfway between two floats has one
// more than a float. If x * l is below 2^-126, its rounding adds an error of up
// to 2^-150. With a small m, this is also too little to matter (isReplaceable).
// An infinite x stays infinite, since h and l are above 0. (Brisebarre and
// Muller, "Correctly rounded multiplication by arbitrary precision constants",
// IEEE Trans. Comput. 57, 2008, have other constants.)
//
// The third kind is a number whose bounds follow from the ops that compute it,
// such as 1 + e^-|x|. The quotient is the dividend times the reciprocal of the
// divisor, with a correction that the next section explains. Here neither
// operand needs a check of its range when the kernel runs.
//
//===----------------------------------------------------------------------===//

static constexpr float kLargestConstant = 0x1p40f;
static constexpr uint32_t kOddParts = 1u << 20;

/// Returns the value of an f32 constant or splat. Returns 0 for other values.
static float getConstant(Value value) {
  APFloat number(0.0f);
  if (!matchPattern(value, m_ConstantFloat(&number)) ||
      !getElementTypeOrSelf(value).isF32())
    return 0.0f;
  return number.convertToFloat();
}

/// Builds the inverse, in f32, of the f8E8M0FNU that `power` extends. The
/// exponent fields of a number and its inverse add up to 254. NaN (255) is its
/// own inverse.
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

/// Builds 1 / `divisor` if the divisor is a power of two from f8E8M0FNU, scalar
/// or vector. Returns null and builds nothing otherwise.
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

/// Returns true if a dividend x of at least `least`, times the inverse of
/// `divisor` split into two parts (h and l above), is the correctly rounded
/// quotient.
static bool isReplaceable(float divisor, float least) {
  if (!(divisor > 1.0f) || divisor > kLargestConstant || !(least > 0.0f))
    return false;
  int exponent = 0;
  auto significand =
      static_cast<uint32_t>(std::ldexp(std::frexp(divisor, &exponent), 24));
  uint32_t odd = significand >> llvm::countr_zero(significand);
  int ofQuotient = std::ilogb(double(least) / divisor);
  // The error in ulps of the smallest quotient.
  double off = 0x1p-22 + std::ldexp(0x1p-150, 23 - ofQuotient);
  return odd > 1 && odd < kOddParts && ofQuotient >= -126 && off < 0.5 / odd;
}

/// Returns a lower bound of `value`, which holds unless `value` is NaN. Returns
/// 0 if no bound is known.
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
  // The fma is exact. Its quotient is a double, so the error of this quotient
  // is far below the ulp of `low`.
  auto low = static_cast<float>(std::fma(-double(high), double(c), 1.0) / c);
  ShapedBuilder s(b, loc, x.getType());
  Value less = s.op<arith::MulFOp>(x, s.f(low));
  return s.fma(x, s.f(high), less);
}

namespace {
/// The range of a value, which holds unless the value is NaN.
struct Interval {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  bool isWithin(double least, double most) const {
    return low >= least && high <= most;
  }
};
} // namespace

static Interval getInterval(Value value);

/// Returns the range of a monotonic function from `ends`, its values at the
/// ends of its operands' ranges. If one of these values is NaN, such as 0 *
/// inf, there is no bound.
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

/// Returns the range of `value` that follows from the ops that compute it.
/// Their rounding is included: for example, e^x with x <= 0 is at most 2.
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

/// Returns true if `value` is known to be 0, NaN or at least 2^-60 in
/// magnitude. A sum with a constant c is either 0 or at least 2^-25 c, so it
/// suffices that c is at least 2^-35.
static bool isCoarse(Value value) {
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<arith::AddFOp, arith::SubFOp>(op))
    return std::abs(getConstant(value)) >= 0x1p-60f;
  return llvm::any_of(op->getOperands(), [](Value operand) {
    return std::abs(getConstant(operand)) >= 0x1p-35f;
  });
}

/// Builds x / y through the reciprocal of y if the ranges of x and y allow it.
/// Returns null otherwise.
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

/// Builds the product that replaces `op`. Returns null and builds nothing if
/// `op` stays a division.
static Value buildProduct(arith::DivFOp op) {
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

//===----------------------------------------------------------------------===//
// One reciprocal for the division of a pack
//
// Let r be the reciprocal of s, rounded to nearest, q = x * r, rounded, and
// rest = q * s - x, which f32 holds exactly. Then
//
//   q' = q - rest * r, rounded
//
// is x / s rounded to nearest, for all significands of x and s. q is off by
// less than 1.5 units in the last place. Before its rounding, q' is off by 1.5
// * 2^-24 of such a unit. So only quotients that are this close to the middle
// of two floats could be rounded wrongly. All of them were computed once and
// are right; test/python/rows/test_divisions.py computes some. (Markstein,
// "Computation of elementary functions on the IBM RISC System/6000 processor",
// IBM J. Res. Dev. 34, 1990, has a proof for a q within one unit.) Nothing
// overflows if s is in [2^-64, 2^64] and |x| is at most 2^62. rest is exact if
// |x / s| is at least 2^-26. Smaller quotients come out below 2^-25, with their
// sign. This is enough if they are narrowed to fp8, which gives 0 of this sign,
// converted to an integer, which gives 0, or added to a number of at least 1.
//
// If other users need small quotients, s must be in [2^-64, 2^20], and x must
// be 0 or |x| at least 2^-100. Then x / s is 0 or a normal number. rest is a
// multiple of the product of the last places of q and s, which is a multiple of
// 2^-149. So f32 holds rest exactly.
//
//===----------------------------------------------------------------------===//

static constexpr float kLeastDivisor = 0x1p-64f, kLargestDivisor = 0x1p64f,
                       kLargestDividend = 0x1p62f;
/// The limits if users of the quotients distinguish small quotients.
static constexpr float kLargestExactDivisor = 0x1p20f,
                       kLeastExactDividend = 0x1p-100f;

/// Returns true if `user` has the same result for all values of its operand
/// `value` that have the same sign and a magnitude below 2^-25. Such a user
/// adds a number of at least 1, converts to an integer, or tests for NaN.
static bool hidesSmall(Operation *user, Value value) {
  if (isa<arith::AddFOp, arith::SubFOp>(user)) {
    APFloat number(0.0f);
    bool isLeft = user->getOperand(0) == value;
    return matchPattern(user->getOperand(isLeft ? 1 : 0),
                        m_ConstantFloat(&number)) &&
           abs(number) >= APFloat(1.0f);
  }
  // A comparison of a value with itself is a test for NaN.
  if (auto comparison = dyn_cast<arith::CmpFOp>(user))
    return comparison.getLhs() == comparison.getRhs();
  return isa<math::RoundEvenOp, arith::FPToSIOp, arith::FPToUIOp>(user);
}

/// Returns true if no user of `value` distinguishes magnitudes below 2^-25:
/// each user narrows to fp8, or hidesSmall() is true for it. Clamps and selects
/// may be between `value` and these users.
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

/// Returns the divisor of all elements of a pack. Returns null if the elements
/// may have different divisors, or if `op` is not an exact division of a pack
/// of several elements.
static Value getSharedDivisor(arith::DivFOp op) {
  auto type = dyn_cast<VectorType>(op.getType());
  auto broadcast = op.getRhs().getDefiningOp<vector::BroadcastOp>();
  if (!type || type.getNumElements() < 2 || !isExactDivision(op) ||
      !broadcast || !broadcast.getSource().getType().isF32())
    return Value();
  return broadcast.getSource();
}

/// Builds the largest magnitude of all elements of `packs`. Combines them in
/// the same order as reductions do. If the divisor is such a maximum, CSE can
/// then reuse it. NaN propagates.
static Value buildLargest(OpBuilder &b, Location loc, ArrayRef<Value> packs) {
  SmallVector<Value> partials;
  for (Value pack : packs) {
    Value magnitudes = math::AbsFOp::create(b, loc, pack);
    partials.push_back(
        reduceTree(b, loc, ReduceKind::max, toElements(b, loc, magnitudes)));
  }
  return reduceTree(b, loc, ReduceKind::max, std::move(partials));
}

/// Builds an i1 that is true if no element has a magnitude between 0 and
/// kLeastExactDividend. Subtracts 1 from the bits of each magnitude and
/// compares the results as unsigned integers, so that 0 becomes the largest.
/// NaN does not count as small.
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
/// Divisions of packs, all in one block, that share one branch.
class SharedDivisions {
public:
  SharedDivisions(arith::DivFOp op, Value divisor) { add(op, divisor); }

  void add(arith::DivFOp op, Value divisor) {
    ops.push_back(op);
    divisors.push_back(divisor);
    isExact |= !isNarrowed(op);
  }
  /// Returns true if `op` can execute at the position of the first division.
  bool takes(arith::DivFOp op, Value divisor, DominanceInfo &order) const {
    return op->getBlock() == ops.front()->getBlock() &&
           order.properlyDominates(op.getLhs(), ops.front()) &&
           order.properlyDominates(divisor, ops.front());
  }
  /// Returns true if sharing a branch is faster than separate divisions. If
  /// quotients near 0 matter, the dividends must be checked, so sharing is
  /// faster only from `fewest` elements on. Otherwise it always is.
  bool pays(int64_t fewest) const;
  void share();

private:
  Value buildInRange(OpBuilder &b, Location loc);
  SmallVector<Value> buildQuotients(OpBuilder &b, Location loc);
  SmallVector<Value> buildDivisions(OpBuilder &b, Location loc);

  SmallVector<arith::DivFOp> ops;
  SmallVector<Value> divisors; ///< divisor of each division
  bool isExact = false;        ///< true if quotients near 0 matter
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

//===----------------------------------------------------------------------===//
// Reciprocals of a block under one check
//
// Let n be the approximation of 1 / x by `rcp.approx.ftz.f32`. If x and 1 / x
// are normal numbers, n - n * (n * x - 1) is 1 / x rounded to nearest. (ptxas
// implements `rcp.rn.f32` with the same two steps, after a check of x's
// exponent.) If x or 1 / x is not a normal number, the instruction gives 0, an
// infinity or NaN, and the remainder n * x - 1 is -1, infinite or NaN. So one
// comparison of the remainder is a sufficient check. The checks of several
// reciprocals form a single condition, which is evaluated after all of them.
//
//===----------------------------------------------------------------------===//

/// A bound for the remainder that is far above the error of the instruction and
/// far below 1.
static constexpr float kLargestRest = 0x1p-20f;

/// Returns true for a correctly rounded 1 / x of a single f32.
static bool isReciprocal(Operation &op) {
  auto division = dyn_cast<arith::DivFOp>(op);
  if (!division || !isExactDivision(division) ||
      !matchPattern(division.getLhs(), m_OneFloat()))
    return false;
  auto vector = dyn_cast<VectorType>(division.getType());
  return !vector || vector.getNumElements() == 1;
}

namespace {
/// Reciprocals in a block, and the ops of this block that depend on them.
class JoinedReciprocals {
public:
  bool takes(Operation &op) const;
  void add(Operation &op) {
    if (isReciprocal(op))
      reciprocals.push_back(cast<arith::DivFOp>(op));
    if (isReciprocal(op) || needs(op))
      ops.insert(&op);
  }
  void join();

private:
  bool needs(Operation &op) const;
  Value buildNear(arith::DivFOp op);
  llvm::SetVector<Operation *> findBetween() const;

  SmallVector<arith::DivFOp> reciprocals;
  llvm::SetVector<Operation *> ops;
  Value holds; ///< i1: all approximations yield correctly rounded results
};
} // namespace

/// Returns true if `op`, or an op nested in it, uses a result of `ops`.
bool JoinedReciprocals::needs(Operation &op) const {
  return anyOp(&op, [&](Operation *inner) {
    return llvm::any_of(inner->getOperands(), [&](Value value) {
      return ops.contains(value.getDefiningOp());
    });
  });
}

/// Returns true if reciprocals after `op` in the block may still join the
/// collected ones. They may if `op` does not depend on the collected
/// reciprocals, or if `op` can be moved behind the later ones and recomputed.
bool JoinedReciprocals::takes(Operation &op) const {
  return !needs(op) || (isPure(&op) && op.getNumRegions() == 0);
}

/// Builds the reciprocal from the approximation and one correction, in the
/// shape of `op`. Adds the check of its remainder to `holds`.
Value JoinedReciprocals::buildNear(arith::DivFOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value x = op.getRhs();
  bool isVector = isa<VectorType>(x.getType());
  if (isVector)
    x = vector::ExtractOp::create(b, loc, x, 0);
  ShapedBuilder s(b, loc, x.getType());
  Value near = buildNearReciprocal(b, loc, x);
  Value rest = s.fma(x, near, s.f(-1.0f));
  Value off = math::AbsFOp::create(b, loc, rest);
  Value isNear = s.cmp(arith::CmpFPredicate::OLT, off, s.f(kLargestRest));
  holds = holds ? s.op<arith::AndIOp>(holds, isNear) : isNear;
  Value result = s.fma(near, arith::NegFOp::create(b, loc, rest), near);
  return isVector ? vector::BroadcastOp::create(b, loc, op.getType(), result)
                  : result;
}

/// Returns the reciprocals, and the ops through which one reciprocal depends on
/// another.
llvm::SetVector<Operation *> JoinedReciprocals::findBetween() const {
  llvm::SmallPtrSet<Operation *, 8> found(reciprocals.begin(),
                                          reciprocals.end());
  for (Operation *op : llvm::reverse(ops))
    if (llvm::any_of(op->getUsers(),
                     [&](Operation *user) { return found.contains(user); }))
      found.insert(op);
  llvm::SetVector<Operation *> between;
  for (Operation *op : ops)
    if (found.contains(op))
      between.insert(op);
  return between;
}

void JoinedReciprocals::join() {
  if (reciprocals.size() < 2)
    return;
  LDBG() << reciprocals.size() << " under one check: " << reciprocals.front();
  arith::DivFOp last = reciprocals.back();
  Location loc = last.getLoc();
  llvm::SetVector<Operation *> between = findBetween();
  SmallVector<OpOperand *> uses; // uses that get results of the branch
  llvm::SetVector<Value> yielded;
  for (Operation *op : between)
    for (OpOperand &use : op->getResult(0).getUses())
      if (!between.contains(use.getOwner())) {
        uses.push_back(&use);
        yielded.insert(op->getResult(0));
      }

  // Compute the exact reciprocals in the else branch. Repeat the ops between
  // the reciprocals there, so that none of them uses an approximation.
  OpBuilder b(last->getContext());
  b.setInsertionPointAfter(last);
  auto branch = scf::IfOp::create(
      b, loc, TypeRange(ValueRange(yielded.getArrayRef())),
      arith::ConstantIntOp::create(b, loc, 1, 1), /*withElseRegion=*/true);
  OpBuilder slow = branch.getElseBodyBuilder();
  IRMapping exact;
  for (Operation *op : between)
    slow.clone(*op, exact);
  auto get = [&](const IRMapping &mapping) {
    return llvm::map_to_vector(
        yielded, [&](Value value) { return mapping.lookupOrDefault(value); });
  };
  scf::YieldOp::create(slow, loc, get(exact));

  for (OpOperand *use : uses)
    use->set(branch.getResult(
        std::distance(yielded.begin(), llvm::find(yielded, use->get()))));
  Operation *place = branch;
  for (Operation *op : ops)
    if (!between.contains(op) && op->isBeforeInBlock(branch)) {
      op->moveAfter(place);
      place = op;
    }
  IRMapping near;
  for (arith::DivFOp op : reciprocals) {
    Value value = buildNear(op);
    near.map(op.getResult(), value);
    op.getResult().replaceAllUsesWith(value);
  }
  OpBuilder fast = branch.getThenBodyBuilder();
  scf::YieldOp::create(fast, loc, get(near));
  branch.getConditionMutable().assign(holds);
  for (arith::DivFOp op : reciprocals)
    op.erase();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
class LowerDivisionsPass
    : public mlafix::impl::LowerDivisionsPassBase<LowerDivisionsPass> {
public:
  using LowerDivisionsPassBase::LowerDivisionsPassBase;
  void runOnOperation() override {
    replaceKnown();
    shareReciprocals();
    joinReciprocals();
  }

private:
  void replaceKnown();
  void shareReciprocals();
  void joinReciprocals();
};
} // namespace

void LowerDivisionsPass::replaceKnown() {
  SmallVector<arith::DivFOp> divisions;
  getOperation().walk([&](arith::DivFOp op) {
    if (isExactDivision(op))
      divisions.push_back(op);
  });
  for (arith::DivFOp op : divisions) {
    Value result = buildProduct(op);
    if (!result)
      continue;
    LDBG() << "a product for " << op;
    op.replaceAllUsesWith(result);
    op.erase();
  }
}

void LowerDivisionsPass::shareReciprocals() {
  DominanceInfo order(getOperation());
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
  int64_t fewest = getMachine(getOperation()).sharedDivisions;
  for (SharedDivisions &divisions : all)
    if (divisions.pays(fewest))
      divisions.share();
}

void LowerDivisionsPass::joinReciprocals() {
  SmallVector<JoinedReciprocals> all;
  getOperation().walk([&](Block *block) {
    all.emplace_back();
    for (Operation &op : *block) {
      if (!all.back().takes(op))
        all.emplace_back();
      all.back().add(op);
    }
  });
  for (JoinedReciprocals &joined : all)
    joined.join();
}
