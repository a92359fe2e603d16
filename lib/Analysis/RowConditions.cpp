//===- RowConditions.cpp - booleans as conditions of linear forms ---------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/FloatClass.h"
#include "lib/Analysis/RowModel.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlafix;

Condition RowModel::getCondition(Value value, bool holds) {
  if (std::optional<int64_t> number = getInteger(value))
    return (*number != 0) == holds ? Condition::always() : Condition::never();
  auto it = conditions.find({value, holds});
  if (it != conditions.end())
    return it->second;
  Condition condition = buildCondition(value, holds);
  conditions[{value, holds}] = condition;
  return condition;
}

Condition RowModel::addOpaqueCondition(Value value, bool holds) {
  auto [it, isNew] = opaqueConditions.try_emplace(value, 0);
  if (isNew) {
    // An unknown of its row, or what a launch passes.
    Linear truth = Linear::of(0u);
    auto argument = dyn_cast<BlockArgument>(value);
    if (argument && getKernelArgument(argument))
      truth = getValue(value);
    else if (auto load = value.getDefiningOp<LoadOp>())
      truth = getValue(load);
    else
      truth = Linear::of(addUnknown(value, {0, 1}));
    it = opaqueConditions.find(value);
    it->second = *truth.getVar();
  }
  Linear linear = Linear::of(it->second);
  linear.constant = holds ? -1 : 0;
  return Condition::of(linear, /*isEquality=*/true);
}

static std::optional<Condition> join(bool conjunction, const Condition &a,
                                     const Condition &b) {
  return conjunction ? both(a, b) : either(a, b);
}

Condition RowModel::buildCondition(Value value, bool holds) {
  std::optional<Condition> result;
  auto exclusive = [&](Value x, Value y, bool differ) {
    std::optional<Condition> one = both(getCondition(x, true),
                                        getCondition(y, !differ)),
                             other = both(getCondition(x, false),
                                          getCondition(y, differ));
    return one && other ? either(*one, *other) : std::nullopt;
  };
  auto choose = [&](Value condition, Value x,
                    Value y) -> std::optional<Condition> {
    std::optional<Condition> first = both(getCondition(condition, true),
                                          getCondition(x, holds)),
                             second = both(getCondition(condition, false),
                                           getCondition(y, holds));
    return first && second ? either(*first, *second) : std::nullopt;
  };
  if (Operation *op = value.getDefiningOp())
    result = TypeSwitch<Operation *, std::optional<Condition>>(op)
                 .Case<arith::AndIOp, arith::OrIOp>([&](auto op) {
                   return join(isa<arith::AndIOp>(op) == holds,
                               getCondition(op.getLhs(), holds),
                               getCondition(op.getRhs(), holds));
                 })
                 .Case<arith::XOrIOp>([&](auto op) {
                   return exclusive(op.getLhs(), op.getRhs(), holds);
                 })
                 .Case<arith::SelectOp>([&](auto op) {
                   return choose(op.getCondition(), op.getTrueValue(),
                                 op.getFalseValue());
                 })
                 .Case<scf::IfOp>([&](auto op) {
                   unsigned number = cast<OpResult>(value).getResultNumber();
                   return choose(op.getCondition(),
                                 op.thenYield().getOperand(number),
                                 op.elseYield().getOperand(number));
                 })
                 .Case<arith::CmpIOp>([&](auto op) -> std::optional<Condition> {
                   if (!op.getLhs().getType().isInteger(1))
                     return buildComparison(op, holds);
                   if (op.getPredicate() == arith::CmpIPredicate::eq)
                     return exclusive(op.getLhs(), op.getRhs(), !holds);
                   if (op.getPredicate() == arith::CmpIPredicate::ne)
                     return exclusive(op.getLhs(), op.getRhs(), holds);
                   return std::nullopt;
                 })
                 .Case<arith::CmpFOp>(
                     [&](auto op) { return buildComparison(op, holds); })
                 .Case<PresentOp>([&](auto op) -> std::optional<Condition> {
                   unsigned argument =
                       getKernelArgument(op.getSource()).getArgNumber();
                   if (!kernel.isArgOptional(argument))
                     return holds ? Condition::always() : Condition::never();
                   Linear linear = Linear::of(getPresent(argument));
                   linear.constant = holds ? -1 : 0;
                   return Condition::of(linear, /*isEquality=*/true);
                 })
                 .Default([](Operation *) { return std::nullopt; });
  return result ? *result : addOpaqueCondition(value, holds);
}

/// `x ^ y < 0`, the test of mlafix-make-total for two signs that differ.
std::optional<Condition> RowModel::buildSignTest(arith::XOrIOp op,
                                                 bool differ) {
  auto isNegative = [&](Value value, bool holds) {
    Linear linear = getValue(value);
    Interval range = getRange(linear);
    if (range.low >= 0 || range.high < 0)
      return std::optional((range.high < 0) == holds ? Condition::always()
                                                     : Condition::never());
    std::optional<Linear> below =
        holds ? add(Linear::of(int64_t(-1)), linear, -1) : linear;
    return below ? std::optional(Condition::of(*below)) : std::nullopt;
  };
  std::optional<Condition> cases = Condition::never();
  for (bool isX : {true, false}) {
    std::optional<Condition> x = isNegative(op.getLhs(), isX),
                             y = isNegative(op.getRhs(), isX != differ);
    std::optional<Condition> one = x && y ? both(*x, *y) : std::nullopt;
    cases = one && cases ? either(*cases, *one) : std::nullopt;
  }
  return cases;
}

std::optional<Condition> RowModel::buildComparison(arith::CmpIOp op,
                                                   bool holds) {
  using P = arith::CmpIPredicate;
  P predicate =
      holds ? op.getPredicate() : arith::invertPredicate(op.getPredicate());
  auto signs = op.getLhs().getDefiningOp<arith::XOrIOp>();
  if (signs && getInteger(op.getRhs()) == 0 &&
      (predicate == P::slt || predicate == P::sge))
    return buildSignTest(signs, predicate == P::slt);
  Linear x = getValue(op.getLhs()), y = getValue(op.getRhs());
  bool isPlain = getRange(x).low >= 0 && getRange(y).low >= 0;
  switch (predicate) {
  case P::ult:
    predicate = P::slt;
    break;
  case P::ule:
    predicate = P::sle;
    break;
  case P::ugt:
    predicate = P::sgt;
    break;
  case P::uge:
    predicate = P::sge;
    break;
  default:
    isPlain = true;
  }
  std::optional<Linear> less = add(y, x, -1), more = add(x, y, -1);
  if (!isPlain || !less || !more)
    return std::nullopt;
  auto strict = [](Linear linear) -> std::optional<Condition> {
    if (__builtin_sub_overflow(linear.constant, 1, &linear.constant))
      return std::nullopt;
    return Condition::of(linear);
  };
  switch (predicate) {
  case P::eq:
    return Condition::of(*less, /*isEquality=*/true);
  case P::ne: {
    std::optional<Condition> below = strict(*less), above = strict(*more);
    return below && above ? either(*below, *above) : std::nullopt;
  }
  case P::slt:
    return strict(*less);
  case P::sgt:
    return strict(*more);
  case P::sle:
    return Condition::of(*less);
  default:
    return Condition::of(*more);
  }
}

std::optional<FloatComparison> RowModel::getFloatComparison(Value value) {
  auto op = value.getDefiningOp<arith::CmpFOp>();
  if (!op || op.getLhs() == op.getRhs())
    return std::nullopt;
  unsigned outcomes = relationsOf(op.getPredicate());
  if (auto swapped = floatRelations.find({op.getRhs(), op.getLhs()});
      swapped != floatRelations.end())
    return FloatComparison{swapped->second, swapRelation(outcomes)};
  auto [it, isNew] = floatRelations.try_emplace({op.getLhs(), op.getRhs()}, 0);
  if (isNew) {
    Var relation = addUnknown(value, {0, 3});
    it = floatRelations.find({op.getLhs(), op.getRhs()});
    it->second = relation;
  }
  return FloatComparison{it->second, outcomes};
}

std::optional<Condition> RowModel::buildComparison(arith::CmpFOp op,
                                                   bool holds) {
  std::optional<FloatComparison> comparison =
      getFloatComparison(op.getResult());
  if (!comparison)
    return std::nullopt;
  unsigned outcomes =
      holds ? comparison->outcomes : ~comparison->outcomes & Relation::All;
  std::optional<Condition> result = Condition::never();
  for (unsigned low = 0; low < 4 && result;) {
    if (!(outcomes >> low & 1)) {
      ++low;
      continue;
    }
    unsigned past = low;
    while (outcomes >> past & 1)
      ++past;
    Linear above = Linear::of(comparison->relation);
    above.constant = -int64_t(low);
    std::optional<Linear> below = add(Linear::of(int64_t(past) - 1),
                                      Linear::of(comparison->relation), -1);
    std::optional<Condition> run =
        below ? both(Condition::of(above), Condition::of(*below))
              : std::nullopt;
    result = run ? either(*result, *run) : std::nullopt;
    low = past;
  }
  return result;
}
