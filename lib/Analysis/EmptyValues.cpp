//===- EmptyValues.cpp - values of a row where rows are empty -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/EmptyCases.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlafix;

using F = FloatClass;

unsigned EmptyCases::epochOf(Value value) const {
  return epochs[values.getLoop(values.getNumber(value))];
}

void EmptyCases::bind(Value value, Number number) {
  Memo &memo = memos[values.getNumber(value)];
  memo.numberEpoch = epochOf(value);
  memo.number = number;
}

EmptyCases::Number EmptyCases::make(FloatClass cls, LseSet lses) {
  symbols.push_back({cls});
  return {unsigned(symbols.size() - 1), lses};
}

EmptyCases::Number EmptyCases::makeNaN(Operation *op, LseSet lses,
                                       const Twine &text) {
  Number number = make(F::NaN, lses);
  if (!((lses | control) & empty))
    return number; // of no empty row
  auto same = llvm::find_if(
      found, [&](const Found &other) { return other.made.op == op; });
  if (same == found.end() && found.size() == 64)
    return number;
  if (same == found.end())
    same = found.insert(found.end(), {{op, "", ""}, false});
  if (!same->isObserved) {
    same->made.operation = text.str();
    same->made.where = describeEmptyRows(lses | control);
  }
  symbol(number).origins = std::uint64_t(1) << (same - found.begin());
  return number;
}

/// One of two values, it is not known which.
EmptyCases::Number EmptyCases::join(Number a, Number b) {
  if (a.symbol == b.symbol)
    return {a.symbol, a.lses | b.lses};
  unsigned bits = symbol(a).cls.bits | symbol(b).cls.bits;
  std::uint64_t origins = symbol(a).origins | symbol(b).origins;
  if (bits != F::NaN) {
    bits &= ~F::NaN;
    origins = 0;
  }
  Number number = make(bits, a.lses | b.lses);
  symbol(number).origins = origins;
  return number;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

EmptyCases::Number EmptyCases::eval(Value value) {
  Memo &memo = memos[values.getNumber(value)];
  if (memo.numberEpoch == epochOf(value))
    return memo.number;
  if (!enter())
    return {};
  Number number = compute(value);
  --depth;
  bind(value, number);
  return number;
}

EmptyCases::Number EmptyCases::compute(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return make(F::Finite, 0);
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    runFor(loop);
    return isOver ? Number() : memos[values.getNumber(value)].number;
  }
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    Decision decision = decide(branch.getCondition());
    Region &region =
        decision.holds ? branch.getThenRegion() : branch.getElseRegion();
    if (isOver || region.empty())
      return {};
    Operation *yield = region.front().getTerminator();
    Number number =
        eval(yield->getOperand(cast<OpResult>(value).getResultNumber()));
    return {number.symbol, number.lses | decision.lses};
  }
  return computeOp(op);
}

EmptyCases::Number EmptyCases::computeOp(Operation *op) {
  FloatAttr constant;
  if (matchPattern(op, m_Constant(&constant)))
    return make(F::of(constant.getValue()), 0);
  DenseFPElementsAttr elements;
  if (matchPattern(op, m_Constant(&elements)) && elements.isSplat())
    return make(F::of(elements.getSplatValue<APFloat>()), 0);
  return llvm::TypeSwitch<Operation *, Number>(op)
      .Case<LoadOp>([&](LoadOp load) { return computeLoad(load); })
      .Case<SplatOp>([&](SplatOp splat) { return eval(splat.getScalar()); })
      .Case<BroadcastOp>([&](BroadcastOp op) { return eval(op.getSource()); })
      .Case<PayloadOp>([&](PayloadOp op) {
        Number state = eval(op.getState());
        return symbol(state).cls.isNaN() ? state : make(F::Finite, state.lses);
      })
      .Case<LseOfOp>([&](LseOfOp op) { return eval(op.getState()); })
      .Case<ReduceOp>([&](ReduceOp reduce) { return computeReduce(reduce); })
      .Case<ScanOp>([&](ScanOp scan) { return computeScan(scan); })
      .Case<arith::SelectOp>(
          [&](arith::SelectOp select) { return computeSelect(select); })
      .Case<arith::MaximumFOp>(
          [&](auto) { return computeExtreme(op, true, true); })
      .Case<arith::MinimumFOp>(
          [&](auto) { return computeExtreme(op, false, true); })
      .Case<arith::MaxNumFOp>(
          [&](auto) { return computeExtreme(op, true, false); })
      .Case<arith::MinNumFOp>(
          [&](auto) { return computeExtreme(op, false, false); })
      .Case<arith::ExtFOp, arith::TruncFOp>(
          [&](auto) { return eval(op->getOperand(0)); })
      .Case<LoadStateOp, IdentityOp, MakeStateOp, MergeOp, MaskOp, RebaseOp>(
          [&](auto) { return computeState(op); })
      .Default([&](Operation *) { return computeArithmetic(op); });
}

EmptyCases::Number EmptyCases::computeLoad(LoadOp load) {
  LseSet lses = 0;
  if (Value predicate = load.getPredicate()) {
    Decision decision = decide(predicate);
    if (isOver)
      return {};
    if (!decision.holds) {
      Number other = load.getOther() ? eval(load.getOther()) : make(F::Zero, 0);
      return {other.symbol, other.lses | decision.lses};
    }
    lses = decision.lses;
  }
  if (std::optional<unsigned> lse = values.getLse(load.getResult())) {
    Number number = computeLse(load, *lse);
    return {number.symbol, number.lses | lses};
  }
  Number number = make(F::Finite, lses);
  if (isRowTile(load.getType()))
    symbol(number).payload = load;
  return number;
}

EmptyCases::Number EmptyCases::computeLse(LoadOp load, unsigned lse) {
  // Of a row of lses some may be empty, and some not.
  static constexpr unsigned scalars[] = {F::NegInf, F::Finite, F::Inf};
  static constexpr unsigned rows[] = {F::NegInf, F::NegInf | F::Finite, F::Inf};
  FloatClass cls = (isRowTile(load.getType()) ? rows : scalars)[choose(3)];
  LseSet bit = LseSet(1) << lse;
  lseClasses[lse] = cls;
  empty = cls.isWithin(F::Infinite) ? empty | bit : empty & ~bit;
  return make(cls, bit);
}

EmptyCases::Number EmptyCases::computeSelect(arith::SelectOp op) {
  Value condition = op.getCondition();
  if (isRowTile(condition.getType()))
    return join(eval(op.getTrueValue()), eval(op.getFalseValue()));
  Decision decision = decide(condition);
  if (isOver)
    return {};
  Number chosen = eval(decision.holds ? op.getTrueValue() : op.getFalseValue());
  return {chosen.symbol, chosen.lses | decision.lses};
}

EmptyCases::Number EmptyCases::computeExtreme(Operation *op, bool isMaximum,
                                              bool keepsNaN) {
  Number a = eval(op->getOperand(0)), b = eval(op->getOperand(1));
  if (isOver)
    return {};
  LseSet lses = a.lses | b.lses;
  bool isFirstNaN = symbol(a).cls.isNaN(), isSecondNaN = symbol(b).cls.isNaN();
  if (isFirstNaN || isSecondNaN)
    return {isFirstNaN == keepsNaN ? a.symbol : b.symbol, lses};
  if (isRowTile(op->getResult(0).getType()))
    return make(apply(op, {symbol(a).cls, symbol(b).cls}), lses);
  bool isFirst = holds(a, b, Relation::Greater | Relation::Equal) == isMaximum;
  return {isFirst ? a.symbol : b.symbol, lses};
}

EmptyCases::Number EmptyCases::computeReduce(ReduceOp op) {
  Number row = eval(op.getSource());
  if (symbol(row).cls.isNaN())
    return row;
  unsigned bits = symbol(row).cls.bits;
  // A row of which some lses are empty has one that is not.
  bool isMixed = bits & F::Finite && bits & F::Infinite;
  if (op.getKind() == ReduceKind::max && isMixed && !(bits & F::Inf))
    bits &= F::Finite;
  if (op.getKind() == ReduceKind::add && isMixed)
    bits |= F::Finite;
  return make(bits, row.lses);
}

/// What begins a row may be all of one kind of its elements.
EmptyCases::Number EmptyCases::computeScan(ScanOp op) {
  Number row = eval(op.getSource());
  return symbol(row).cls.isNaN() ? row : make(symbol(row).cls.bits, row.lses);
}

/// A state whose lse is NaN, or whose row is while it is not empty, is stored
/// as NaN (N6); the algebra makes none (N3 to N5).
EmptyCases::Number EmptyCases::computeState(Operation *op) {
  if (auto mask = dyn_cast<MaskOp>(op)) {
    Decision decision = decide(mask.getPredicate());
    if (!decision.holds || isOver)
      return make(F::NegInf, decision.lses);
    return eval(mask.getState());
  }
  if (auto state = dyn_cast<MakeStateOp>(op)) {
    Number lse = eval(state.getLse());
    if (symbol(lse).cls.isNaN() || symbol(lse).cls.isWithin(F::Infinite))
      return lse;
    Number row = eval(state.getRow());
    return symbol(row).cls.isNaN() ? row : lse;
  }
  Number all = make(F::Finite, 0);
  for (Value operand : op->getOperands()) {
    if (!isa<StateType>(operand.getType()))
      continue;
    Number number = eval(operand);
    all.lses |= number.lses;
    if (!symbol(number).cls.isNaN())
      continue;
    symbol(all).cls = F::NaN;
    symbol(all).origins |= symbol(number).origins;
  }
  return all;
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Whether one factor is zero because a row is empty, and the other is what
/// memory holds of that row.
bool EmptyCases::isZeroTimesPayload(Operation *op, ArrayRef<Number> operands,
                                    LoadOp &payload) {
  if (!isa<arith::MulFOp, math::FmaOp>(op))
    return false;
  for (auto [zero, row] : {std::pair(operands[0], operands[1]),
                           std::pair(operands[1], operands[0])}) {
    payload = symbol(row).payload;
    if (payload && symbol(zero).cls.isWithin(F::Zeros) &&
        (zero.lses | control) & empty & values.getLsesOfPayload(payload))
      return true;
  }
  return false;
}

static std::string describeNaN(Operation *op, ArrayRef<FloatClass> classes) {
  std::string a = spelling(classes.front()).str(),
              b = spelling(classes.back()).str();
  return llvm::TypeSwitch<Operation *, std::string>(op)
      .Case<arith::AddFOp>([&](auto) { return a + " + " + b; })
      .Case<arith::SubFOp>([&](auto) { return a + " - " + b; })
      .Case<arith::MulFOp>([&](auto) { return a + " * " + b; })
      .Case<arith::DivFOp>([&](auto) { return a + " / " + b; })
      .Case<math::FmaOp>([&](auto) {
        return a + " * " + spelling(classes[1]).str() + " + " + b;
      })
      .Default([&](Operation *) {
        return (op->getName().stripDialect() + "(" + a + ")").str();
      });
}

EmptyCases::Number EmptyCases::computeArithmetic(Operation *op) {
  SmallVector<Number, 3> operands;
  SmallVector<FloatClass, 3> classes;
  LseSet lses = 0;
  for (Value operand : op->getOperands()) {
    if (!isa<FloatType>(getElementTypeOrSelf(operand.getType())))
      continue;
    operands.push_back(eval(operand));
    lses |= operands.back().lses;
  }
  if (isOver)
    return {};
  std::uint64_t origins = 0;
  bool isNaN = false;
  for (Number operand : operands) {
    classes.push_back(symbol(operand).cls);
    isNaN |= classes.back().isNaN();
    origins |= symbol(operand).origins;
  }
  if (isNaN) {
    Number number = make(F::NaN, lses);
    symbol(number).origins = origins;
    return number;
  }
  if (operands.empty())
    return make(F::Finite, 0);
  LoadOp payload;
  if (isZeroTimesPayload(op, operands, payload)) {
    unsigned argument = getKernelArgument(payload.getSource()).getArgNumber();
    return makeNaN(op, lses,
                   "0 * a row of " + kernel.getArgName(argument) +
                       ", which may hold anything,");
  }
  FloatClass cls;
  if (isa<arith::SubFOp>(op)) {
    cls =
        subtract(classes[0], classes[1], relationOf(operands[0], operands[1]));
  } else {
    cls = apply(op, classes);
  }
  if (cls.isNaN())
    return makeNaN(op, lses, describeNaN(op, classes));
  Number number = make(cls, lses);
  // What is computed of one row of memory alone is as arbitrary as that.
  if (isa<arith::MulFOp>(op) || operands.size() == 1)
    for (Number operand : operands)
      if (LoadOp row = symbol(operand).payload)
        symbol(number).payload = row;
  return number;
}
