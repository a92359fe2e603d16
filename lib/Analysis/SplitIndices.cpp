//===- SplitIndices.cpp - x // size and x % size as indices ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Matches divisions in the form that mlafix-define-edge-cases writes. If the
// divisor is not 0, dividend = quotient * divisor + remainder holds modulo
// 2^bits, however the quotient is rounded. If the divisor is 0, the quotient is
// the dividend. So quotient, remainder and divisor together determine the
// dividend.
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/SplitIndices.h"

#include "lib/Analysis/AccessLog.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlafix;

/// True if `test` compares `value` for equality with `number`.
static bool isEqualTo(Value test, Value value, int64_t number) {
  auto compare = test.getDefiningOp<arith::CmpIOp>();
  return compare && compare.getPredicate() == arith::CmpIPredicate::eq &&
         isSameNumber(compare.getLhs(), value) &&
         getInteger(compare.getRhs()) == number;
}

/// Returns the divisor that the kernel's source has. If that divisor is 0 or,
/// in a signed division, -1, mlafix-define-edge-cases divides by 1 instead:
/// `used` is then a select between 1 and the divisor. If `used` is no such
/// select, returns `used`.
static Value getDivisor(Value used, bool isSigned) {
  auto select = used.getDefiningOp<arith::SelectOp>();
  if (!select || getInteger(select.getTrueValue()) != 1)
    return used;
  Value divisor = select.getFalseValue(), test = select.getCondition();
  if (isEqualTo(test, divisor, 0) && !isSigned)
    return divisor;
  auto any = test.getDefiningOp<arith::OrIOp>();
  bool isEdge = any && isSigned &&
                ((isEqualTo(any.getLhs(), divisor, 0) &&
                  isEqualTo(any.getRhs(), divisor, -1)) ||
                 (isEqualTo(any.getRhs(), divisor, 0) &&
                  isEqualTo(any.getLhs(), divisor, -1)));
  return isEdge ? divisor : used;
}

/// Matches a quotient or remainder of a division that rounds towards zero.
static std::optional<Division> matchToZero(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::DivUIOp, arith::RemUIOp>(op))
    return Division{op->getOperand(0),
                    getDivisor(op->getOperand(1), /*isSigned=*/false),
                    isa<arith::RemUIOp>(op), Division::Unsigned};
  if (isa_and_nonnull<arith::DivSIOp, arith::RemSIOp>(op))
    return Division{op->getOperand(0),
                    getDivisor(op->getOperand(1), /*isSigned=*/true),
                    isa<arith::RemSIOp>(op), Division::ToZero};
  auto select = dyn_cast_if_present<arith::SelectOp>(op);
  if (!select)
    return std::nullopt;
  std::optional<Division> inner;
  auto quotient = select.getFalseValue().getDefiningOp<arith::DivSIOp>();
  auto negated = select.getTrueValue().getDefiningOp<arith::SubIOp>();
  if (!quotient || !negated || getInteger(negated.getLhs()) != 0)
    return std::nullopt;
  inner = matchToZero(quotient);
  bool isEdge = inner && isEqualTo(select.getCondition(), inner->divisor, -1) &&
                negated.getRhs() == inner->dividend;
  return isEdge ? inner : std::nullopt;
}

/// True if `test` checks that the remainder of `division` is not zero and that
/// its sign differs from that of the divisor.
static bool isCut(Value test, const Division &division) {
  auto isRemainder = [&](Value value) {
    std::optional<Division> rest = matchToZero(value);
    return rest && rest->isRemainder && rest->rounding == Division::ToZero &&
           rest->dividend == division.dividend &&
           isSameNumber(rest->divisor, division.divisor);
  };
  auto isLeft = [&](Value value) {
    auto compare = value.getDefiningOp<arith::CmpIOp>();
    return compare && compare.getPredicate() == arith::CmpIPredicate::ne &&
           isRemainder(compare.getLhs()) && getInteger(compare.getRhs()) == 0;
  };
  auto haveOtherSigns = [&](Value value) {
    auto compare = value.getDefiningOp<arith::CmpIOp>();
    auto signs = compare ? compare.getLhs().getDefiningOp<arith::XOrIOp>()
                         : arith::XOrIOp();
    return signs && compare.getPredicate() == arith::CmpIPredicate::slt &&
           getInteger(compare.getRhs()) == 0 && isRemainder(signs.getLhs()) &&
           isSameNumber(signs.getRhs(), division.divisor);
  };
  auto both = test.getDefiningOp<arith::AndIOp>();
  return both && ((isLeft(both.getLhs()) && haveOtherSigns(both.getRhs())) ||
                  (isLeft(both.getRhs()) && haveOtherSigns(both.getLhs())));
}

std::optional<Division> mlafix::matchDivision(Value value) {
  Operation *cast = value.getDefiningOp();
  if (isa_and_nonnull<arith::IndexCastOp, arith::ExtSIOp>(cast) &&
      !cast->getOperand(0).getType().isIndex())
    value = cast->getOperand(0);
  if (std::optional<Division> division = matchToZero(value))
    return division;
  auto select = value.getDefiningOp<arith::SelectOp>();
  std::optional<Division> division =
      select ? matchToZero(select.getFalseValue()) : std::nullopt;
  if (!division || division->rounding != Division::ToZero ||
      !isCut(select.getCondition(), *division))
    return std::nullopt;
  auto next = select.getTrueValue().getDefiningOp<arith::AddIOp>();
  if (!next || next.getLhs() != select.getFalseValue())
    return std::nullopt;
  bool isDown = division->isRemainder
                    ? isSameNumber(next.getRhs(), division->divisor)
                    : getInteger(next.getRhs()) == -1;
  division->rounding = Division::Down;
  return isDown ? division : std::nullopt;
}

SmallVector<SplitIndex, 1>
mlafix::findSplitIndices(RowModel &model, const MemoryAccess &access) {
  SmallVector<std::optional<Division>, 4> divisions;
  for (Value index : access.indices)
    divisions.push_back(matchDivision(index));
  SmallVector<SplitIndex, 1> found;
  for (auto [i, quotient] : llvm::enumerate(divisions))
    for (auto [j, rest] : llvm::enumerate(divisions)) {
      if (!quotient || !rest || quotient->isRemainder || !rest->isRemainder ||
          quotient->rounding != rest->rounding ||
          !isSameNumber(quotient->divisor, rest->divisor) ||
          !isUniform(quotient->divisor))
        continue;
      Linear dividend = model.getValue(quotient->dividend),
             divisor = model.getValue(quotient->divisor);
      if (divisor.isConstant() || !(dividend == model.getValue(rest->dividend)))
        continue;
      bool keepsSign = quotient->rounding != Division::Unsigned &&
                       model.getRange(divisor).low >= 0;
      found.push_back({unsigned(i), unsigned(j), quotient->dividend.getType(),
                       dividend, quotient->divisor, keepsSign});
    }
  return found;
}

bool mlafix::haveEqualDividends(const SplitIndex &a, const SplitIndex &b) {
  return a.quotient == b.quotient && a.remainder == b.remainder &&
         a.type == b.type && isSameNumber(a.divisor, b.divisor);
}
