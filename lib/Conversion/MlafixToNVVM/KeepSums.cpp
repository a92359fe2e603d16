//===- KeepSums.cpp - sums that a factor of 0 leaves as they are ----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/Passes.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-keep-sums"

namespace mlafix {
#define GEN_PASS_DEF_KEEPSUMSPASS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// Whether `condition` says that `value` is 0, which is +0.0 then: no power is
/// -0.0.
static bool isZeroPower(Value condition, Value value) {
  auto equal = condition.getDefiningOp<arith::CmpFOp>();
  return equal && equal.getPredicate() == arith::CmpFPredicate::OEQ &&
         equal.getLhs() == value && value.getDefiningOp<math::Exp2Op>() &&
         matchPattern(equal.getRhs(), m_AnyZeroFloat());
}

/// Whether `value` is seen to be +0.0 wherever `condition` holds.
static bool isZeroWhere(Value condition, Value value) {
  if (matchPattern(condition, m_Zero()) ||
      matchPattern(value, m_PosZeroFloat()) || isZeroPower(condition, value))
    return true;
  auto of = value.getDefiningOp<arith::SelectOp>();
  if (!of)
    return false;
  if (of.getCondition() == condition)
    return isZeroWhere(condition, of.getTrueValue());
  auto by = condition.getDefiningOp<arith::SelectOp>();
  return by && by.getCondition() == of.getCondition() &&
         isZeroWhere(by.getTrueValue(), of.getTrueValue()) &&
         isZeroWhere(by.getFalseValue(), of.getFalseValue());
}

/// The number in all elements of `pack`; null if it is none.
static Value getSplat(Value pack) {
  auto broadcast = pack.getDefiningOp<vector::BroadcastOp>();
  return broadcast ? broadcast.getSource() : Value();
}

/// `fma` with the payload itself in place of -0.0 where its factor is 0, and
/// the addend in place of the sum there.
static bool keepSum(math::FmaOp fma) {
  Value factor = getSplat(fma.getA());
  auto mask = fma.getB().getDefiningOp<arith::SelectOp>();
  if (!factor || !mask || !mask->hasOneUse() ||
      !isa<VectorType>(mask.getType()) ||
      !matchPattern(mask.getTrueValue(), m_NegZeroFloat()) ||
      isa<VectorType>(mask.getCondition().getType()) ||
      !isZeroWhere(mask.getCondition(), factor))
    return false;
  OpBuilder b(fma);
  Value sum = math::FmaOp::create(b, fma.getLoc(), fma.getA(),
                                  mask.getFalseValue(), fma.getC());
  Value kept = arith::SelectOp::create(b, fma.getLoc(), mask.getCondition(),
                                       fma.getC(), sum);
  fma.replaceAllUsesWith(kept);
  fma.erase();
  mask.erase();
  return true;
}

namespace {
class KeepSumsPass : public mlafix::impl::KeepSumsPassBase<KeepSumsPass> {
public:
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    if (!isGPU(getTarget(kernel)) || getMachine(kernel).pairArithmetic)
      return;
    SmallVector<math::FmaOp> sums;
    kernel.walk([&](math::FmaOp op) { sums.push_back(op); });
    int64_t kept = llvm::count_if(sums, keepSum);
    LDBG() << kernel.getSymName() << ": " << kept << " sums are kept";
  }
};
} // namespace
