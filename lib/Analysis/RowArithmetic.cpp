//===- RowArithmetic.cpp - models arithmetic as linear forms --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/FloatClass.h"
#include "lib/Analysis/RowModel.h"
#include "lib/Analysis/SplitIndices.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;
using namespace mlafix;

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

namespace mlafix {
/// Builds the linear form of one op's result.
class ValueBuilder {
public:
  ValueBuilder(RowModel &model, Value value)
      : model(model), value(value), type(getIntegerRange(value.getType())) {}

  std::optional<Linear> build(Operation *op);

private:
  using Result = std::optional<Linear>;

  /// Returns `form` if it cannot overflow the value's type. Otherwise returns
  /// wrapped(`form`).
  Result fitting(Result form) {
    if (!form || type.contains(model.getRange(*form)))
      return form;
    return wrapped(*form);
  }
  Result wrapped(const Linear &form);
  Linear operand(Operation *op, unsigned index) {
    return model.getValue(op->getOperand(index));
  }
  bool isNegativeFree(const Linear &form) const {
    return model.getRange(form).low >= 0;
  }
  Result product(Operation *op);
  /// Returns floor(x / divisor) for a positive divisor.
  Result quotient(const Linear &x, int64_t divisor);
  Result newQuotient(const Linear &x, int64_t divisor);
  /// Returns floor(x / divisor), where `x` is `known.dividend` + `shift`.
  Result shiftedQuotient(const RowModel::Quotient &known, const Linear &shift);
  /// Returns x - divisor * floor(x / divisor).
  Result remainder(const Linear &x, int64_t divisor);
  Result division(Operation *op);
  Result ceilDivision(Operation *op);
  Result floored(arith::SelectOp op);
  Result iterations(arith::SelectOp op);
  Result shift(Operation *op);
  Result mask(arith::AndIOp op);
  Result extremum(Operation *op);
  Result extremum(const Linear &x, const Linear &y, bool isMaximum);
  Result extend(Operation *op);

  RowModel &model;
  Value value;
  Interval type;
};
} // namespace mlafix

/// Returns `form` + `constant`, or nullopt on overflow.
static std::optional<Linear> plus(std::optional<Linear> form,
                                  __int128 constant) {
  if (!form)
    return std::nullopt;
  constant += form->constant;
  if (constant < kMinI64 || constant > kMaxI64)
    return std::nullopt;
  form->constant = int64_t(constant);
  return form;
}

/// Returns an unknown that equals `form` modulo 2^width of the type: on
/// overflow, values wrap around. Returns nullopt if the model does not follow
/// wraps, or if `form` may be further than 2^width / 2 outside of the type's
/// range.
std::optional<Linear> ValueBuilder::wrapped(const Linear &form) {
  Interval range = model.getRange(form);
  __int128 values = type.high - type.low + 1, over = range.high - type.high,
           under = type.low - range.low;
  if (type.high > kMaxI64 || over > values / 2 || under > values / 2)
    return std::nullopt;
  model.hasWraps = true;
  if (!model.followsWraps)
    return std::nullopt;
  auto define = [&](Var var) -> std::optional<Condition> {
    Result isSame = add(form, Linear::of(var), -1);
    if (!isSame)
      return std::nullopt;
    Condition condition = Condition::of(*isSame, /*isEquality=*/true);
    auto addCase = [&](Result form, Result wrap) {
      Conjunct &rows = condition.disjuncts.emplace_back();
      for (const Result &row : {form, wrap})
        if (row) // omitting a row only enlarges the set
          rows.push_back({*row});
    };
    Linear itself = Linear::of(var);
    if (over > 0)
      addCase(plus(form, -type.high - 1),
              plus(*scale(itself, -1), type.low + over - 1));
    if (under > 0)
      addCase(plus(scale(form, -1), type.low - 1),
              plus(itself, under - type.high - 1));
    return condition;
  };
  return Linear::of(model.addDerived(value, type, define, Variable::Unknown));
}

std::optional<Linear> ValueBuilder::product(Operation *op) {
  Linear x = operand(op, 0), y = operand(op, 1);
  if (x.isConstant())
    std::swap(x, y);
  return y.isConstant() ? fitting(scale(x, y.constant)) : std::nullopt;
}

/// Returns floor(n / divisor).
static __int128 floorDivide(__int128 n, int64_t divisor) {
  return n >= 0 ? n / divisor : -((-n + divisor - 1) / divisor);
}

/// Takes multiples of the divisor out of the dividend. If the rest differs from
/// the dividend of an earlier quotient by the same divisor only by a form that
/// is fixed per launch, reuses the variable of that quotient: `(t + 1) // 3` is
/// `t // 3` plus 0 or 1.
std::optional<Linear> ValueBuilder::quotient(const Linear &x, int64_t divisor) {
  if (divisor <= 0 || divisor > (1 << 20))
    return std::nullopt;
  if (divisor == 1)
    return x;
  Linear whole, rest;
  whole.constant = floorDivide(x.constant, divisor);
  rest.constant = x.constant - whole.constant * divisor;
  for (auto [var, factor] : x.terms)
    if (factor % divisor == 0)
      whole.terms.push_back({var, factor / divisor});
    else
      rest.terms.push_back({var, factor});
  if (rest.isConstant())
    return whole;
  Result floor;
  for (const RowModel::Quotient &known : model.quotients) {
    Result shift =
        known.divisor == divisor ? add(rest, known.dividend, -1) : std::nullopt;
    if (!shift || !model.isLaunch(*shift) ||
        (!shift->isConstant() && model.isLaunch(rest)))
      continue;
    floor = shiftedQuotient(RowModel::Quotient(known), *shift);
    break;
  }
  if (!floor)
    floor = newQuotient(rest, divisor);
  return add(whole, floor);
}

std::optional<Linear> ValueBuilder::newQuotient(const Linear &x,
                                                int64_t divisor) {
  Interval range = model.getRange(x);
  if (range.low < kMinI64 || range.high > kMaxI64)
    return std::nullopt;
  Var var = model.addDerived(
      value,
      {floorDivide(range.low, divisor), floorDivide(range.high, divisor)},
      [&](Var var) -> std::optional<Condition> {
        Result rest = add(x, Linear::of(var, divisor), -1),
               room = add(Linear::of(divisor - 1), rest, -1);
        if (!room)
          return std::nullopt;
        return Condition{{Conjunct{{*rest}, {*room}}}};
      });
  model.quotients.push_back({x, divisor, var});
  return Linear::of(var);
}

/// Adds the quotients of `known` and of `shift`, and a carry. The carry is 1 if
/// the sum of the remainders reaches the divisor.
std::optional<Linear>
ValueBuilder::shiftedQuotient(const RowModel::Quotient &known,
                              const Linear &shift) {
  if (shift == Linear())
    return Linear::of(known.var);
  Result floor = quotient(shift, known.divisor);
  Result left = add(shift, floor, -known.divisor);
  Result kept = add(known.dividend, Linear::of(known.var), -known.divisor);
  Result over = add(add(left, kept), Linear::of(known.divisor), -1);
  Result under = add(Linear::of(int64_t(-1)), over, -1);
  Result sum = add(Linear::of(known.var), floor);
  if (!under || !sum)
    return std::nullopt;
  if (left->isConstant() && left->constant == 0)
    return sum;
  Var carry =
      model.addDerived(value, {0, 1}, [&](Var var) -> std::optional<Condition> {
        return Condition{{Conjunct{{Linear::of(var), true}, {*under}},
                          Conjunct{{Linear::of(var, 1, -1), true}, {*over}}}};
      });
  return add(*sum, Linear::of(carry));
}

std::optional<Linear> ValueBuilder::remainder(const Linear &x,
                                              int64_t divisor) {
  return add(x, quotient(x, divisor), -divisor);
}

/// Models a division by a constant as a floor division. A truncating division
/// equals a floor division if its dividend is not negative; otherwise, it is
/// not modelled.
std::optional<Linear> ValueBuilder::division(Operation *op) {
  Linear x = operand(op, 0), y = operand(op, 1);
  bool isRemainder = isa<arith::RemSIOp, arith::RemUIOp>(op);
  bool roundsDown = isa<arith::FloorDivSIOp>(op) || isNegativeFree(x);
  if (!y.isConstant() || !roundsDown)
    return std::nullopt;
  return isRemainder ? remainder(x, y.constant) : quotient(x, y.constant);
}

/// Matches floor(x / c) and x mod c for positive c in the form that
/// mlafix-define-edge-cases writes: the truncated result, corrected if the
/// remainder is negative.
std::optional<Linear> ValueBuilder::floored(arith::SelectOp op) {
  std::optional<Division> division = matchDivision(op);
  if (!division || division->rounding != Division::Down)
    return std::nullopt;
  std::optional<int64_t> divisor = getInteger(division->divisor);
  if (!divisor || *divisor < 1)
    return std::nullopt;
  Linear x = model.getValue(division->dividend);
  return division->isRemainder ? remainder(x, *divisor) : quotient(x, *divisor);
}

/// Matches a trip count in the form that mlafix-define-edge-cases writes:
/// floor((upper - lower - 1) / step) + 1 if lower < upper, else 0.
std::optional<Linear> ValueBuilder::iterations(arith::SelectOp op) {
  auto test = op.getCondition().getDefiningOp<arith::CmpIOp>();
  auto count = op.getTrueValue().getDefiningOp<arith::AddIOp>();
  if (!test || !count || getInteger(op.getFalseValue()) != 0 ||
      getInteger(count.getRhs()) != 1)
    return std::nullopt;
  Value lower = test.getLhs(), upper = test.getRhs(), further = count.getLhs();
  if (test.getPredicate() == arith::CmpIPredicate::sgt)
    std::swap(lower, upper);
  else if (test.getPredicate() != arith::CmpIPredicate::slt)
    return std::nullopt;
  if (auto least = further.getDefiningOp<arith::MinUIOp>();
      least && getInteger(least.getRhs()) == kMaxI64 - 1)
    further = least.getLhs();
  if (auto cast = further.getDefiningOp<arith::IndexCastUIOp>())
    further = cast.getIn();
  auto division = further.getDefiningOp<arith::DivUIOp>();
  std::optional<int64_t> step =
      division ? getInteger(division.getRhs()) : std::nullopt;
  Result room = add(model.getValue(upper), model.getValue(lower), -1);
  Result distance = plus(room, -1);
  // Give up if the dividend may overflow: its form in the model is then not
  // `distance`. Give up if the step is 1, too: the count may then overflow.
  if (!step || *step < 2 || !distance ||
      !(model.getValue(division.getLhs()) == *distance))
    return std::nullopt;
  Result floor = plus(quotient(*distance, *step), 1);
  if (!floor || isNegativeFree(*room))
    return floor;
  return extremum(*floor, Linear(), /*isMaximum=*/true);
}

/// Models ceil(x / c) as floor((x + c - 1) / c).
std::optional<Linear> ValueBuilder::ceilDivision(Operation *op) {
  Linear x = operand(op, 0), y = operand(op, 1);
  if (!y.isConstant() || !isNegativeFree(x) || y.constant < 1)
    return std::nullopt;
  Result above = add(x, Linear::of(y.constant - 1));
  return above ? quotient(*above, y.constant) : std::nullopt;
}

std::optional<Linear> ValueBuilder::shift(Operation *op) {
  Linear x = operand(op, 0), y = operand(op, 1);
  if (!y.isConstant() || y.constant < 0 || y.constant > 20)
    return std::nullopt;
  int64_t factor = int64_t(1) << y.constant;
  if (isa<arith::ShLIOp>(op))
    return fitting(scale(x, factor));
  if (isa<arith::ShRUIOp>(op) && !isNegativeFree(x))
    return std::nullopt;
  return quotient(x, factor);
}

/// Models x & (2^k - 1) as x mod 2^k.
std::optional<Linear> ValueBuilder::mask(arith::AndIOp op) {
  Linear x = operand(op, 0), y = operand(op, 1);
  if (x.isConstant())
    std::swap(x, y);
  if (!y.isConstant() || y.constant < 0 || y.constant >= (1 << 20) ||
      (y.constant & (y.constant + 1)) != 0)
    return std::nullopt;
  return remainder(x, y.constant + 1);
}

std::optional<Linear> ValueBuilder::extremum(Operation *op) {
  Linear x = operand(op, 0), y = operand(op, 1);
  if (isa<arith::MaxUIOp, arith::MinUIOp>(op) &&
      !(isNegativeFree(x) && isNegativeFree(y)))
    return std::nullopt;
  return extremum(x, y, isa<arith::MaxSIOp, arith::MaxUIOp>(op));
}

std::optional<Linear> ValueBuilder::extremum(const Linear &x, const Linear &y,
                                             bool isMaximum) {
  Interval a = model.getRange(x), b = model.getRange(y);
  Interval range =
      isMaximum ? Interval{std::max(a.low, b.low), std::max(a.high, b.high)}
                : Interval{std::min(a.low, b.low), std::min(a.high, b.high)};
  Result over = isMaximum ? add(x, y, -1) : add(y, x, -1);
  if (!over)
    return std::nullopt;
  Result under = scale(*over, -1);
  Var var =
      model.addDerived(value, range, [&](Var var) -> std::optional<Condition> {
        Result isX = add(x, Linear::of(var), -1),
               isY = add(y, Linear::of(var), -1);
        if (!under || !isX || !isY)
          return std::nullopt;
        return Condition{{Conjunct{{*over}, {*isX, true}},
                          Conjunct{{*under}, {*isY, true}}}};
      });
  return Linear::of(var);
}

/// Models a cast between integer types. The cast keeps the number if both types
/// can hold it.
std::optional<Linear> ValueBuilder::extend(Operation *op) {
  Value source = op->getOperand(0);
  bool isUnsigned = isa<arith::IndexCastUIOp, arith::ExtUIOp>(op);
  if (source.getType().isInteger(1)) {
    if (!isUnsigned)
      return std::nullopt;
    return model.chooseLinear(value, source, Linear::of(int64_t(1)), Linear());
  }
  Linear x = operand(op, 0);
  if (isUnsigned && !isNegativeFree(x))
    return std::nullopt;
  return fitting(x);
}

std::optional<Linear> ValueBuilder::build(Operation *op) {
  return TypeSwitch<Operation *, Result>(op)
      .Case<arith::AddIOp>(
          [&](auto) { return fitting(add(operand(op, 0), operand(op, 1))); })
      .Case<arith::SubIOp>([&](auto) {
        return fitting(add(operand(op, 0), operand(op, 1), -1));
      })
      .Case<arith::MulIOp>([&](auto) { return product(op); })
      .Case<arith::FloorDivSIOp, arith::DivSIOp, arith::DivUIOp, arith::RemSIOp,
            arith::RemUIOp>([&](auto) { return division(op); })
      .Case<arith::CeilDivSIOp, arith::CeilDivUIOp>(
          [&](auto) { return ceilDivision(op); })
      .Case<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>(
          [&](auto) { return shift(op); })
      .Case<arith::AndIOp>([&](auto op) { return mask(op); })
      .Case<arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp, arith::MinUIOp>(
          [&](auto) { return extremum(op); })
      .Case<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp,
            arith::IndexCastUIOp, arith::ExtUIOp>(
          [&](auto) { return extend(op); })
      .Case<arith::SelectOp>([&](auto op) -> Result {
        if (Result floor = floored(op))
          return floor;
        if (Result count = iterations(op))
          return count;
        return model.buildChoice(value, op.getCondition(), op.getTrueValue(),
                                 op.getFalseValue());
      })
      .Case<scf::IfOp>([&](auto op) -> Result {
        unsigned number = cast<OpResult>(value).getResultNumber();
        return model.buildChoice(value, op.getCondition(),
                                 op.thenYield().getOperand(number),
                                 op.elseYield().getOperand(number));
      })
      .Case<memref::DimOp>([&](auto op) -> Result {
        return model.buildDim(value,
                              getKernelArgument(op.getSource()).getArgNumber(),
                              *op.getConstantIndex());
      })
      .Case<ArgReduceOp>([&](auto op) -> Result {
        return model.buildElementIndex(value, op.getSource());
      })
      .Case<TopKOp>([&](auto op) -> Result {
        if (!llvm::is_contained(op.getIndices(), value))
          return std::nullopt;
        return model.buildElementIndex(value, op.getSource());
      })
      .Case<LoadOp>([&](auto op) -> Result { return model.buildLoad(op); })
      .Default([](Operation *) { return std::nullopt; });
}

std::optional<Linear> RowModel::buildResult(Value value) {
  return ValueBuilder(*this, value).build(value.getDefiningOp());
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

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
    // The boolean is an unknown of the row or fixed per launch.
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
  return Condition::is(it->second, holds);
}

static std::optional<Condition> join(bool conjunction, const Condition &a,
                                     const Condition &b) {
  return conjunction ? both(a, b) : either(a, b);
}

Condition RowModel::buildCondition(Value value, bool holds) {
  std::optional<Condition> result;
  auto exclusive = [&](Value x, Value y, bool differ) {
    auto one = both(getCondition(x, true), getCondition(y, !differ));
    return either(one, both(getCondition(x, false), getCondition(y, differ)));
  };
  auto choose = [&](Value condition, Value x, Value y) {
    auto first = both(getCondition(condition, true), getCondition(x, holds));
    return either(first,
                  both(getCondition(condition, false), getCondition(y, holds)));
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
                   return Condition::is(getPresent(argument), holds);
                 })
                 .Default([](Operation *) { return std::nullopt; });
  return result ? *result : addOpaqueCondition(value, holds);
}

/// Returns the condition that the operands of `x ^ y` have different signs or,
/// without `differ`, the same sign. mlafix-define-edge-cases writes this test
/// as `x ^ y < 0`.
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
    cases = either(cases, both(x, y));
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
  // The unsigned predicates have the order of the signed ones. They compare
  // like these where no operand is negative.
  bool isUnsigned = predicate >= P::ult;
  if (isUnsigned && (getRange(x).low < 0 || getRange(y).low < 0))
    return std::nullopt;
  if (isUnsigned)
    predicate = P(int(predicate) - int(P::ult) + int(P::slt));
  std::optional<Linear> less = add(y, x, -1), more = add(x, y, -1);
  if (!less || !more)
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
    return either(below, above);
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
    Linear distance = Linear::of(comparison->relation, 1, -int64_t(low));
    result = either(result, isBelow(distance, Linear::of(int64_t(past - low))));
    low = past;
  }
  return result;
}
