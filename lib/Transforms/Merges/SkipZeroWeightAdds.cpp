//===- SkipZeroWeightAdds.cpp - skip additions of zero --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-skip-zero-weight-adds"

namespace mlafix {
#define GEN_PASS_DEF_SKIPZEROWEIGHTADDSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// Returns true if `value` is a power of 2 and `condition` compares it with 0
/// for equality. Where `condition` holds, `value` is +0.0, since a power of 2
/// is never -0.0.
static bool isZeroPower(Value condition, Value value) {
  auto equal = condition.getDefiningOp<arith::CmpFOp>();
  return equal && equal.getPredicate() == arith::CmpFPredicate::OEQ &&
         equal.getLhs() == value && value.getDefiningOp<math::Exp2Op>() &&
         matchPattern(equal.getRhs(), m_AnyZeroFloat());
}

/// Returns true if `value` is provably +0.0 wherever `condition` holds.
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

/// Returns the number that `pack` broadcasts, or null if `pack` is not a
/// broadcast.
static Value getSplat(Value pack) {
  auto broadcast = pack.getDefiningOp<vector::BroadcastOp>();
  return broadcast ? broadcast.getSource() : Value();
}

/// Rewrites fma(factor, select(c, -0.0, payload), addend) to select(c, addend,
/// fma(factor, payload, addend)), where c implies factor = 0. Returns true on
/// success.
static bool keepSum(math::FmaOp fma) {
  Value factor = getSplat(fma.getA());
  auto mask = fma.getB().getDefiningOp<arith::SelectOp>();
  if (!factor || !mask || !mask->hasOneUse() ||
      !isa<VectorType>(mask.getType()) ||
      !matchPattern(mask.getTrueValue(), m_NegZeroFloat()) ||
      isa<VectorType>(mask.getCondition().getType()) ||
      getSplat(fma.getC()) || // a broadcast is no payload
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
/// Matches the payload of a state: 0 if the state is empty, else a row times a
/// number. The row has one of three forms:
///
///   - a sum of two payloads, the second of which may be skipped (keepSum),
///   - a payload times its weight, possibly plus a zero of either sign,
///   - a payload as loaded.
struct MergedRow {
  static std::optional<MergedRow> get(arith::SelectOp op);
  bool takesRow(Value row);
  bool takesFirst(Value row);
  Value getNone() { return op.getCondition(); }
  int64_t countElements() {
    return cast<VectorType>(op.getType()).getNumElements();
  }
  void maskNumbers();

  arith::SelectOp op;    ///< selects 0 or `product`
  arith::MulFOp product; ///< the row times a number
  /// Selects `first` or `sum`; null unless there are two payloads.
  arith::SelectOp kept;
  /// Adds the second payload to `first`; null if `kept` is null.
  math::FmaOp sum;
  Operation *first = {}; ///< weight times `mask`; null for a payload as loaded
  Value added;           ///< addend of `first`; null if there is none
  arith::SelectOp mask;  ///< selects -0.0 or `payload`; null if `first` is null
  Value payload;         ///< first payload
};
} // namespace

/// Returns true if `value` is only clamped and narrowed. It is then cheaper to
/// mask the narrowed elements, as 32-bit words.
static bool isOnlyNarrowed(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    if (isa<arith::TruncFOp>(user))
      return true;
    return isa<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
               arith::MinNumFOp>(user) &&
           matchPattern(user->getOperand(1), m_Constant()) &&
           isOnlyNarrowed(user->getResult(0));
  });
}

static bool isOfNumber(Value condition) {
  return !isa<VectorType>(condition.getType());
}

/// Matches the structure of `row`. Returns false if the row has another form,
/// or if its parts have other uses.
bool MergedRow::takesRow(Value row) {
  kept = row.getDefiningOp<arith::SelectOp>();
  if (kept) {
    sum = kept.getFalseValue().getDefiningOp<math::FmaOp>();
    return kept->hasOneUse() && isOfNumber(kept.getCondition()) && sum &&
           sum->hasOneUse() && sum.getC() == kept.getTrueValue() &&
           kept.getTrueValue().getDefiningOp<arith::MulFOp>() &&
           llvm::hasNItems(sum.getC().getUses(), 2) && takesFirst(sum.getC());
  }
  if (row.hasOneUse() && takesFirst(row))
    return true;
  payload = row;
  auto widening = row.getDefiningOp<arith::ExtFOp>();
  return widening &&
         getElementTypeOrSelf(widening.getIn()).getIntOrFloatBitWidth() == 16;
}

bool MergedRow::takesFirst(Value row) {
  Operation *op = row.getDefiningOp();
  auto fma = dyn_cast_or_null<math::FmaOp>(op);
  if (!isa_and_nonnull<arith::MulFOp, math::FmaOp>(op) ||
      !getSplat(op->getOperand(0)) || (fma && !getSplat(fma.getC())))
    return false;
  auto masked = op->getOperand(1).getDefiningOp<arith::SelectOp>();
  if (!masked || !masked->hasOneUse() || !isOfNumber(masked.getCondition()) ||
      !matchPattern(masked.getTrueValue(), m_NegZeroFloat()))
    return false;
  first = op;
  added = fma ? fma.getC() : Value();
  mask = masked;
  payload = mask.getFalseValue();
  return true;
}

std::optional<MergedRow> MergedRow::get(arith::SelectOp op) {
  MergedRow row;
  row.op = op;
  row.product = op.getFalseValue().getDefiningOp<arith::MulFOp>();
  if (!isa<VectorType>(op.getType()) || !isOfNumber(op.getCondition()) ||
      !matchPattern(op.getTrueValue(), m_PosZeroFloat()) || !row.product ||
      !row.product->hasOneUse() || !getSplat(row.product.getRhs()) ||
      isOnlyNarrowed(op) || !row.takesRow(row.product.getLhs()))
    return std::nullopt;
  return row;
}

/// Moves the selection of 0 for an empty state to the scalars. For an empty
/// state, the payloads are masked, the addend becomes -0.0, the weight 1, and
/// the final factor -1. The result is then 1 * -0.0 * -1 = 0.
void MergedRow::maskNumbers() {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value none = getNone();
  auto extend = [&](arith::SelectOp of) -> Value {
    return of ? Value(arith::OrIOp::create(b, loc, of.getCondition(), none))
              : none;
  };
  auto replace = [&](Value splat, float number) -> Value {
    Value other = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(number));
    Value chosen =
        arith::SelectOp::create(b, loc, none, other, getSplat(splat));
    return vector::BroadcastOp::create(b, loc, splat.getType(), chosen);
  };
  Value zeros = mask ? mask.getTrueValue() : Value();
  if (!zeros)
    zeros = arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(cast<VectorType>(op.getType()),
                               b.getF32FloatAttr(-0.0f).getValue()));
  Value row = arith::SelectOp::create(b, loc, extend(mask), zeros, payload);
  if (first) {
    Value factor = replace(first->getOperand(0), 1.0f);
    if (added)
      row = math::FmaOp::create(b, loc, factor, row, replace(added, -0.0f));
    else
      row = arith::MulFOp::create(b, loc, factor, row);
  }
  if (kept) {
    Value more = math::FmaOp::create(b, loc, sum.getA(), sum.getB(), row);
    row = arith::SelectOp::create(b, loc, extend(kept), row, more);
  }
  Value result =
      arith::MulFOp::create(b, loc, row, replace(product.getRhs(), -1.0f));
  op.replaceAllUsesWith(result);
  for (Operation *dead :
       {op.getOperation(), product.getOperation(), kept.getOperation(),
        sum.getOperation(), first, mask.getOperation()})
    if (dead)
      dead->erase();
}

/// For each condition that selects at least `fewest` elements, replaces the
/// selects of elements by four operations on scalars. Returns the number of
/// packs that have been rewritten.
static int64_t maskRows(KernelOp kernel, int64_t fewest) {
  // Maps the condition of an empty state to the rows that it replaces by 0.
  llvm::MapVector<Value, SmallVector<MergedRow>> rows;
  kernel.walk([&](arith::SelectOp op) {
    if (std::optional<MergedRow> row = MergedRow::get(op))
      rows[row->getNone()].push_back(*row);
  });
  int64_t masked = 0;
  for (auto &[none, ofOne] : rows) {
    int64_t elements = 0;
    for (MergedRow &row : ofOne)
      elements += row.countElements();
    if (elements < fewest)
      continue;
    for (MergedRow &row : ofOne)
      row.maskNumbers();
    masked += ofOne.size();
  }
  return masked;
}

namespace {
class SkipZeroWeightAddsPass
    : public mlafix::impl::SkipZeroWeightAddsPassBase<SkipZeroWeightAddsPass> {
public:
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    MachineModel machine = getMachine(kernel);
    if (!isGPU(getTarget(kernel)) || machine.pairArithmetic)
      return;
    SmallVector<math::FmaOp> sums;
    kernel.walk([&](math::FmaOp op) { sums.push_back(op); });
    int64_t kept = llvm::count_if(sums, keepSum);
    int64_t masked = maskRows(kernel, machine.maskedElements);
    LDBG() << kernel.getSymName() << ": " << kept << " sums are kept, "
           << masked << " packs are masked by numbers";
  }
};
} // namespace
