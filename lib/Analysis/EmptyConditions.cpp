//===- EmptyConditions.cpp - conditions of a row where rows are empty -----===//
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

/// What was decided about the number of the smaller symbol and the other.
unsigned &EmptyCases::factOf(Number a, Number b) {
  unsigned first = std::min(a.symbol, b.symbol),
           second = std::max(a.symbol, b.symbol);
  for (Fact &fact : facts)
    if (fact.a == first && fact.b == second)
      return fact.relation;
  bool isOne = first == second;
  facts.push_back(
      {first, second, unsigned(isOne ? Relation::Equal : Relation::Ordered)});
  return facts.back().relation;
}

unsigned EmptyCases::relationOf(Number a, Number b) {
  unsigned fact = factOf(a, b);
  return a.symbol > b.symbol ? swapRelation(fact) : fact;
}

/// Those classes of `a` that can be in one of the relations to `b`.
static FloatClass restrict(FloatClass a, FloatClass b, unsigned relations) {
  unsigned kept = 0;
  for (unsigned bit = 1; bit <= F::Inf; bit <<= 1)
    if (a.bits & bit && relate(bit, b) & relations)
      kept |= bit;
  return kept;
}

bool EmptyCases::holds(Number a, Number b, unsigned wanted) {
  unsigned known = relationOf(a, b) | Relation::Unordered;
  FloatClass x = symbol(a).cls, y = symbol(b).cls;
  unsigned possible = relate(x, y) & known;
  if (!(possible & wanted))
    return false;
  if (!(possible & ~wanted))
    return true;
  bool result = choose(2) == 0;
  unsigned kept = result ? possible & wanted : possible & ~wanted;
  factOf(a, b) &= a.symbol > b.symbol ? swapRelation(kept) : kept;
  if (a.symbol != b.symbol) {
    symbol(a).cls = restrict(x, y, kept);
    symbol(b).cls = restrict(y, x, swapRelation(kept));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

EmptyCases::Decision EmptyCases::decide(Value condition) {
  Memo &memo = memos[values.getNumber(condition)];
  if (memo.decisionEpoch == epochOf(condition))
    return memo.decision;
  if (!enter())
    return {};
  memo.decision = computeDecision(condition);
  --depth;
  memo.decisionEpoch = epochOf(condition);
  return memo.decision;
}

EmptyCases::Decision EmptyCases::computeDecision(Value condition) {
  auto either = [&](LseSet lses) { return Decision{choose(2) == 0, lses}; };
  Operation *op = condition.getDefiningOp();
  if (!op || op->getNumResults() == 0)
    return either(0);
  BoolAttr constant;
  if (matchPattern(op, m_Constant(&constant)))
    return {constant.getValue(), 0};
  // The second operand matters only where the first does not decide.
  auto both = [&](bool decisive) {
    Decision a = decide(op->getOperand(0));
    if (a.holds == decisive || isOver)
      return a;
    Decision b = decide(op->getOperand(1));
    return Decision{b.holds, b.holds == decisive ? b.lses : a.lses | b.lses};
  };
  return llvm::TypeSwitch<Operation *, Decision>(op)
      .Case<arith::CmpFOp>([&](arith::CmpFOp cmp) { return compare(cmp); })
      .Case<arith::AndIOp>([&](auto) { return both(false); })
      .Case<arith::OrIOp>([&](auto) { return both(true); })
      .Case<arith::XOrIOp>([&](auto) {
        Decision a = decide(op->getOperand(0)), b = decide(op->getOperand(1));
        return Decision{a.holds != b.holds, a.lses | b.lses};
      })
      .Case<arith::SelectOp>([&](arith::SelectOp select) {
        Decision which = decide(select.getCondition());
        Decision chosen = decide(which.holds ? select.getTrueValue()
                                             : select.getFalseValue());
        return Decision{chosen.holds, which.lses | chosen.lses};
      })
      .Case<scf::IfOp>([&](scf::IfOp branch) {
        Decision which = decide(branch.getCondition());
        Region &region =
            which.holds ? branch.getThenRegion() : branch.getElseRegion();
        if (isOver || region.empty())
          return Decision();
        unsigned result = cast<OpResult>(condition).getResultNumber();
        Decision chosen =
            decide(region.front().getTerminator()->getOperand(result));
        return Decision{chosen.holds, which.lses | chosen.lses};
      })
      .Case<math::IsNaNOp>(
          [&](auto) { return decideClass(op->getOperand(0), F::NaN); })
      .Case<math::IsInfOp>(
          [&](auto) { return decideClass(op->getOperand(0), F::Infinite); })
      .Case<math::IsFiniteOp>(
          [&](auto) { return decideClass(op->getOperand(0), F::Finite); })
      .Default([&](Operation *) { return either(0); });
}

EmptyCases::Decision EmptyCases::compare(arith::CmpFOp op) {
  Number a = eval(op.getLhs()), b = eval(op.getRhs());
  if (isOver)
    return {};
  unsigned wanted = relationsOf(op.getPredicate());
  return {holds(a, b, wanted), a.lses | b.lses};
}

/// Whether a float is of one of these classes.
EmptyCases::Decision EmptyCases::decideClass(Value operand, unsigned classes) {
  Number number = eval(operand);
  if (isOver)
    return {};
  unsigned bits = symbol(number).cls.bits;
  bool result = bits & classes;
  if (result && bits & ~classes)
    result = choose(2) == 0;
  symbol(number).cls = result ? bits & classes : bits & ~classes;
  return {result, number.lses};
}
