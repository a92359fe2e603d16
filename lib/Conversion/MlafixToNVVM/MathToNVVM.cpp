//===- MathToNVVM.cpp - lowers math to instructions -----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/Passes.h"
#include "lib/Transforms/ElementaryMath.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/DebugLog.h"
#include "llvm/Support/MathExtras.h"

#define DEBUG_TYPE "mlafix-math-to-nvvm"

namespace mlafix {
#define GEN_PASS_DEF_MATHTONVVMPASS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// A function of one f32, built from approximate hardware instructions.
using ScalarFn = function_ref<Value(OpBuilder &, Location, Value)>;

static Value callIntrinsic(OpBuilder &b, Location loc, StringRef name,
                           Value x) {
  return LLVM::CallIntrinsicOp::create(b, loc, b.getF32Type(),
                                       b.getStringAttr(name), ValueRange{x})
      .getResults();
}

/// Applies `fn` to a scalar, or to each element of a vector. `fn` returns
/// values of type `element`, or of its operand's type if `element` is null.
static Value applyToElements(OpBuilder &b, Location loc, Value x, ScalarFn fn,
                             Type element = Type()) {
  auto vector = dyn_cast<VectorType>(x.getType());
  if (!vector)
    return fn(b, loc, x);
  if (element)
    vector = vector.cloneWith(std::nullopt, element);
  Value result = arith::ConstantOp::create(b, loc, b.getZeroAttr(vector));
  for (int64_t i = 0; i < vector.getNumElements(); ++i)
    result = vector::InsertOp::create(
        b, loc, fn(b, loc, vector::ExtractOp::create(b, loc, x, i)), result, i);
  return result;
}

/// Applies an instruction for one f32 to a scalar, or to each element of a
/// vector.
static Value callOnElements(OpBuilder &b, Location loc, StringRef name,
                            Value x) {
  return applyToElements(b, loc, x, [&](OpBuilder &b, Location loc, Value v) {
    return callIntrinsic(b, loc, name, v);
  });
}

/// Computes 1 / x by an instruction that treats subnormals as 0. Divisors are
/// never subnormal here.
static Value reciprocal(OpBuilder &b, Location loc, Value x) {
  return callOnElements(b, loc, "llvm.nvvm.rcp.approx.ftz.f", x);
}

static bool hasFlags(Operation *op, arith::FastMathFlags flags) {
  auto math = dyn_cast<arith::ArithFastMathInterface>(op);
  return math && arith::bitEnumContainsAll(
                     math.getFastMathFlagsAttr().getValue(), flags);
}

/// Lowers log2. With `afn`, uses the hardware instruction. Its error is
/// absolute (near 1, no digit may be correct), and it treats subnormals as 0.
static Value lowerLog2(OpBuilder &b, Operation *op) {
  Location loc = op->getLoc();
  Value x = op->getOperand(0);
  if (hasFlags(op, arith::FastMathFlags::afn))
    return callOnElements(b, loc, "llvm.nvvm.lg2.approx.ftz.f", x);
  ShapedBuilder s(b, loc, x.getType());
  return buildLog2(s, x, [&](Value a, Value c) {
    return s.op<arith::MulFOp>(a, reciprocal(b, loc, c));
  });
}

/// Computes e^x if x is a difference to a row's maximum and the exponentials
/// are summed (`afn`). Rounding the exponent causes a relative error of 1.3 *
/// 2^-24 |x| in e^x. The relative error of the sum is 1.3 * 2^-24 times the
/// mean of |x| weighted by e^x. This mean, an entropy, is at most log(n) for n
/// elements. So the error stays within the log2(n) * 2^-24 that the additions
/// may lose anyway.
static Value lowerSummedExp(ShapedBuilder s, Value x) {
  Value exponent = s.op<arith::MulFOp>(x, s.f(llvm::numbers::log2ef));
  return callOnElements(s.b, s.loc, "llvm.nvvm.ex2.approx.ftz.f32", exponent);
}

static Value lowerMath(OpBuilder &b, Operation *op) {
  Location loc = op->getLoc();
  Value x = op->getOperand(0);
  auto exp2 = [&](Value v) {
    return callOnElements(b, loc, "llvm.nvvm.ex2.approx.f32", v);
  };
  ShapedBuilder s(b, loc, x.getType());
  if (isa<math::Exp2Op>(op))
    return exp2(x);
  if (isa<math::ExpOp>(op) && hasFlags(op, arith::FastMathFlags::afn))
    return lowerSummedExp(s, x);
  if (isa<math::ExpOp>(op))
    return buildExp(s, x, exp2);
  if (isa<math::Log2Op>(op))
    return lowerLog2(b, op);
  if (isa<math::LogOp>(op))
    return s.op<arith::MulFOp>(lowerLog2(b, op), s.f(llvm::numbers::ln2f));
  if (isa<math::SinOp, math::CosOp>(op))
    return buildSine(s, x, isa<math::CosOp>(op));
  if (isa<math::ErfOp>(op))
    return buildErf(s, x, exp2);
  if (isa<math::TanhOp>(op))
    return buildTanh(s, x, exp2,
                     [&](Value v) { return reciprocal(b, loc, v); });
  if (isa<math::RsqrtOp>(op))
    return callOnElements(b, loc, "llvm.nvvm.rsqrt.approx.f", x);
  return {};
}

/// Lowers x / y to x * rcp(y). The flags of `op` must allow reciprocals
/// (`arcp`).
static Value lowerDivision(OpBuilder &b, arith::DivFOp op) {
  Value inverse = reciprocal(b, op.getLoc(), op.getRhs());
  return matchPattern(op.getLhs(), m_OneFloat())
             ? inverse
             : arith::MulFOp::create(b, op.getLoc(), op.getLhs(), inverse);
}

/// Returns x if the comparison is (x >= c) or (x > c) with a constant c <= 0,
/// else null. An assembler may decide such a comparison without regard to NaN.
static Value getComparedWithNonPositive(arith::CmpFOp op) {
  auto isNonPositive = [](Value x) {
    APFloat value(0.0f);
    return matchPattern(x, m_ConstantFloat(&value)) &&
           (value.isZero() || value.isNegative()) && !value.isNaN();
  };
  switch (op.getPredicate()) {
  case arith::CmpFPredicate::OGE:
  case arith::CmpFPredicate::OGT:
    return isNonPositive(op.getRhs()) ? op.getLhs() : Value();
  case arith::CmpFPredicate::OLE:
  case arith::CmpFPredicate::OLT:
    return isNonPositive(op.getLhs()) ? op.getRhs() : Value();
  default:
    return Value();
  }
}

/// Works around a fold of ptxas 13.0, which takes `setp.ge.f32` for true if it
/// compares a value known to be nonnegative (an absolute value, a square, a
/// power, or a sum of these) with a constant <= 0. That is wrong for NaN. An
/// additional NaN test in assembly, which ptxas and LLVM cannot fold, corrects
/// the result.
static Value lowerComparison(OpBuilder &b, arith::CmpFOp op) {
  Value x = getComparedWithNonPositive(op);
  if (!x || !getElementTypeOrSelf(x).isF32())
    return {};
  Location loc = op.getLoc();
  auto isNumber = [](OpBuilder &b, Location loc, Value v) -> Value {
    return buildAssembly(b, loc, b.getI1Type(), v, "setp.num.f32 $0, $1, $1;",
                         "=b,f", /*hasEffects=*/false)
        ->getResult(0);
  };
  Value isOrdered = applyToElements(b, loc, x, isNumber, b.getI1Type());
  return arith::AndIOp::create(b, loc, b.clone(*op)->getResult(0), isOrdered);
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

namespace {
/// Describes a byte that is `source` saturated to the range of a byte. `source`
/// is an i32, or an f32 that is also rounded to nearest, with 0 for NaN. If the
/// byte is computed in another way, `source` is null.
struct SaturatedByte {
  Value source;
  bool isUnsigned;
};
} // namespace

/// If `value` is clamped to the range of a byte, returns the value before the
/// clamp as the source. Otherwise returns a null source.
template <typename MinOp, typename MaxOp>
static SaturatedByte dropByteBounds(Value value) {
  for (bool isUnsigned : {false, true})
    if (Value source = getUnclamped<MinOp, MaxOp>(value, isUnsigned ? 0 : -128,
                                                  isUnsigned ? 255 : 127))
      return {source, isUnsigned};
  return {};
}

/// Matches the conversion from f32 to bytes that `narrow` (RowAccess.cpp)
/// builds. The source is null if there is no match.
static SaturatedByte getRounded(arith::FPToSIOp op) {
  auto rounded = op.getIn().getDefiningOp<arith::SubFOp>();
  auto sum = rounded ? rounded.getLhs().getDefiningOp<arith::AddFOp>()
                     : arith::AddFOp();
  constexpr double kUnit = 12582912.0;
  if (!sum || !isConstantNumber(sum.getRhs(), kUnit) ||
      !isConstantNumber(rounded.getRhs(), kUnit))
    return {};
  SaturatedByte byte =
      dropByteBounds<arith::MinNumFOp, arith::MaxNumFOp>(sum.getLhs());
  auto number = byte.source ? byte.source.getDefiningOp<arith::SelectOp>()
                            : arith::SelectOp();
  auto isNaN = number ? number.getCondition().getDefiningOp<arith::CmpFOp>()
                      : arith::CmpFOp();
  Value x = number ? number.getFalseValue() : Value();
  if (!isNaN || isNaN.getPredicate() != arith::CmpFPredicate::UNO ||
      isNaN.getLhs() != x || isNaN.getRhs() != x ||
      !matchPattern(number.getTrueValue(), m_AnyZeroFloat()))
    return {};
  return {x, byte.isUnsigned};
}

/// Returns a word whose lower half is `low` and `high` (i32), each saturated to
/// a byte. Its upper half is the lower half of `above`.
static Value packBytes(OpBuilder &b, Location loc, Value low, Value high,
                       Value above, bool isUnsigned) {
  std::string text = std::string("cvt.pack.sat.") + (isUnsigned ? "u8" : "s8") +
                     ".s32.b32 $0, $2, $1, $3;";
  return buildAssembly(b, loc, b.getI32Type(), {low, high, above}, text,
                       "=r,r,r,r", /*hasEffects=*/false)
      ->getResult(0);
}

/// Returns the leading bytes of `words` that `op` needs. The last word is not
/// needed as a whole: the result is one or two bytes, or some words and two
/// bytes.
static Value lowerFew(OpBuilder &b, arith::TruncIOp op, ValueRange words) {
  Location loc = op.getLoc();
  auto type = dyn_cast<VectorType>(op.getType());
  if (!type)
    return arith::TruncIOp::create(b, loc, op.getType(), words.front());
  auto bytes = VectorType::get({int64_t(words.size()) * 4}, b.getI8Type());
  auto whole = vector::FromElementsOp::create(
      b, loc, VectorType::get({int64_t(words.size())}, b.getI32Type()), words);
  Value all = vector::BitCastOp::create(b, loc, bytes, whole);
  return vector::ExtractStridedSliceOp::create(
      b, loc, all, /*offsets=*/{0}, type.getShape(), /*strides=*/{1});
}

/// Lowers a truncation to bytes if its operand is saturated to the range of a
/// byte. Each cvt.pack.sat saturates and packs two values. If the source is
/// f32, f2i.rn rounds each of the two values first, and ptxas merges these
/// roundings with the cvt.pack.sat.
static Value lowerTruncation(OpBuilder &b, arith::TruncIOp op) {
  if (!getElementTypeOrSelf(op.getType()).isInteger(8) ||
      !getElementTypeOrSelf(op.getIn()).isInteger(32))
    return {};
  auto conversion = op.getIn().getDefiningOp<arith::FPToSIOp>();
  SaturatedByte byte =
      conversion ? getRounded(conversion)
                 : dropByteBounds<arith::MinSIOp, arith::MaxSIOp>(op.getIn());
  auto type = dyn_cast<VectorType>(op.getType());
  int64_t count = type ? type.getNumElements() : 1;
  if (!byte.source || (count > 1 && count % 2 != 0))
    return {};
  Location loc = op.getLoc();
  Value zero = arith::ConstantIntOp::create(b, loc, 0, 32);
  auto get = [&](int64_t i) -> Value {
    if (i >= count)
      return zero;
    Value x = type ? vector::ExtractOp::create(b, loc, byte.source, i)
                   : Value(byte.source);
    if (!conversion)
      return x;
    return LLVM::CallIntrinsicOp::create(b, loc, b.getI32Type(),
                                         b.getStringAttr("llvm.nvvm.f2i.rn"),
                                         ValueRange{x})
        .getResults();
  };
  SmallVector<Value> words;
  for (int64_t i = 0; i < count; i += 4) {
    Value upper = i + 2 < count ? packBytes(b, loc, get(i + 2), get(i + 3),
                                            zero, byte.isUnsigned)
                                : zero;
    words.push_back(
        packBytes(b, loc, get(i), get(i + 1), upper, byte.isUnsigned));
  }
  if (count % 4 != 0) // the last word has 1 or 2 bytes
    return lowerFew(b, op, words);
  Value whole = vector::FromElementsOp::create(
      b, loc, VectorType::get({count / 4}, b.getI32Type()), words);
  return vector::BitCastOp::create(b, loc, type, whole);
}

namespace {
class MathToNVVMPass : public mlafix::impl::MathToNVVMPassBase<MathToNVVMPass> {
public:
  void runOnOperation() override {
    if (failed(run(getOperation())))
      return signalPassFailure();
  }

private:
  LogicalResult run(LLVM::LLVMFuncOp function);
};
} // namespace

LogicalResult MathToNVVMPass::run(LLVM::LLVMFuncOp function) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops) {
    OpBuilder b(op);
    Value result;
    if (auto division = dyn_cast<arith::DivFOp>(op);
        division && hasFlags(op, arith::FastMathFlags::arcp))
      result = lowerDivision(b, division);
    else if (auto comparison = dyn_cast<arith::CmpFOp>(op))
      result = lowerComparison(b, comparison);
    else if (auto truncation = dyn_cast<arith::TruncIOp>(op))
      result = lowerTruncation(b, truncation);
    else if (isa_and_nonnull<math::MathDialect>(op->getDialect()))
      result = lowerMath(b, op);
    if (result) {
      LDBG() << "lowers " << *op;
      op->getResult(0).replaceAllUsesWith(result);
      op->erase();
    } else if (failed(checkRemainingMath(op))) {
      return failure();
    }
  }
  return success();
}
