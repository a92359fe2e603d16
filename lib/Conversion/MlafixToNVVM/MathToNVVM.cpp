//===- MathToNVVM.cpp - math becomes instructions ------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/Passes.h"
#include "lib/Transforms/ElementaryMath.h"

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

/// A function of one f32, built of the hardware's approximate instructions.
using ScalarFn = function_ref<Value(OpBuilder &, Location, Value)>;

static Value callIntrinsic(OpBuilder &b, Location loc, StringRef name,
                           Value x) {
  return LLVM::CallIntrinsicOp::create(b, loc, b.getF32Type(),
                                       b.getStringAttr(name), ValueRange{x})
      .getResults();
}

/// Applies a scalar function to a scalar or to each element of a vector. The
/// results are of type `element`, by default that of the operands.
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

/// An instruction of one f32, for a scalar or each element of a vector.
static Value callOnElements(OpBuilder &b, Location loc, StringRef name,
                            Value x) {
  return applyToElements(b, loc, x, [&](OpBuilder &b, Location loc, Value v) {
    return callIntrinsic(b, loc, name, v);
  });
}

/// Subnormals, which it flushes, are no divisors here.
static Value reciprocal(OpBuilder &b, Location loc, Value x) {
  return callOnElements(b, loc, "llvm.nvvm.rcp.approx.ftz.f", x);
}

static bool hasFlags(Operation *op, arith::FastMathFlags flags) {
  auto math = dyn_cast<arith::ArithFastMathInterface>(op);
  return math && arith::bitEnumContainsAll(
                     math.getFastMathFlagsAttr().getValue(), flags);
}

/// log2, or where an approximation will do (`afn`) the instruction: its error
/// is an absolute one, so that near 1 no digit may be left, and it takes
/// subnormals for 0.
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

static Value lowerMath(OpBuilder &b, Operation *op) {
  Location loc = op->getLoc();
  Value x = op->getOperand(0);
  auto exp2 = [&](Value v) {
    return callOnElements(b, loc, "llvm.nvvm.ex2.approx.f32", v);
  };
  ShapedBuilder s(b, loc, x.getType());
  if (isa<math::Exp2Op>(op))
    return exp2(x);
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
  if (isa<math::RsqrtOp>(op))
    return callOnElements(b, loc, "llvm.nvvm.rsqrt.approx.f", x);
  return {};
}

/// x / y where a reciprocal is allowed: x * rcp(y).
static Value lowerDivision(OpBuilder &b, arith::DivFOp op) {
  Value inverse = reciprocal(b, op.getLoc(), op.getRhs());
  return matchPattern(op.getLhs(), m_OneFloat())
             ? inverse
             : arith::MulFOp::create(b, op.getLoc(), op.getLhs(), inverse);
}

/// The operand that is compared (at least, or more than) with a constant of 0
/// or below. An assembler could decide that without regard to NaN. Null for
/// other comparisons.
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

/// ptxas (seen in 13.0) takes `setp.ge.f32` of a value that it knows not to be
/// negative (an absolute value, a square, a power, a sum of such) and a
/// constant of 0 or below for true, and NaN makes it false. So assembly,
/// which LLVM leaves alone, tests beside it whether the value is a number.
static Value lowerComparison(OpBuilder &b, arith::CmpFOp op) {
  Value x = getComparedWithNonPositive(op);
  if (!x || !getElementTypeOrSelf(x).isF32())
    return {};
  Location loc = op.getLoc();
  auto isNumber = [](OpBuilder &b, Location loc, Value v) -> Value {
    return LLVM::InlineAsmOp::create(
               b, loc, b.getI1Type(), v, "setp.num.f32 $0, $1, $1;", "=b,f",
               /*has_side_effects=*/false, /*is_align_stack=*/false,
               LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(),
               ArrayAttr())
        .getResult(0);
  };
  Value isOrdered = applyToElements(b, loc, x, isNumber, b.getI1Type());
  return arith::AndIOp::create(b, loc, b.clone(*op)->getResult(0), isOrdered);
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
