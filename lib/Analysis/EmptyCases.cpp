//===- EmptyCases.cpp - a row's program when rows are empty ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/EmptyCases.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlafix;
using F = FloatClass;

/// The most values to evaluate in all cases of a kernel together. Evaluating
/// this many takes a few hundred microseconds.
static constexpr unsigned kBudget = 8192;
static constexpr unsigned kMostChoices = 64;
/// The greatest depth of an expression.
static constexpr unsigned kMostDepth = 200;

EmptyCases::EmptyCases(const LseValues &values, KernelOp kernel)
    : values(values), kernel(kernel), budget(kBudget),
      memos(values.getCount() + 1), epochs(values.getLoopCount()),
      lseClasses(values.getLses().size()) {}

std::vector<MadeNaN> mlafix::findMadeNaNs(KernelOp kernel) {
  if (kernel.allows("nan"))
    return {};
  LseValues values(kernel);
  if (values.getLses().empty())
    return {};
  return EmptyCases(values, kernel).run();
}

//===----------------------------------------------------------------------===//
// Cases
//===----------------------------------------------------------------------===//

/// Picks one of `count` alternatives. Later cases pick the others.
unsigned EmptyCases::choose(unsigned count) {
  if (isOver)
    return 0;
  if (position < choices.size())
    return choices[position++].chosen;
  if (choices.size() == kMostChoices) {
    isOver = true;
    return 0;
  }
  choices.push_back({0, count});
  ++position;
  return 0;
}

/// Moves on to the next case. Returns false if this was the last one or the
/// budget is used up.
bool EmptyCases::advance() {
  while (!choices.empty() && choices.back().chosen + 1 == choices.back().count)
    choices.pop_back();
  if (choices.empty() || budget == 0)
    return false;
  ++choices.back().chosen;
  return true;
}

/// Begins the evaluation of a value. Returns false if the budget or the depth
/// is exhausted.
bool EmptyCases::enter() {
  if (budget == 0 || depth == kMostDepth)
    isOver = true;
  if (isOver)
    return false;
  --budget;
  ++depth;
  return true;
}

void EmptyCases::runCase() {
  position = 0;
  isOver = false;
  for (unsigned &epoch : epochs)
    epoch = ++lastEpoch;
  symbols.assign(1, {FloatClass::Finite});
  facts.clear();
  empty = control = 0;
  runBlock(kernel.getGrid()->getRegions().back().front());
}

std::vector<MadeNaN> EmptyCases::run() {
  do
    runCase();
  while (advance());
  std::vector<MadeNaN> result;
  for (Found &one : found)
    if (one.isObserved)
      result.push_back(std::move(one.made));
  return result;
}

std::string EmptyCases::describeEmptyRows(LseSet lses) {
  std::string text;
  SmallVector<std::string> seen;
  for (auto [i, load] : llvm::enumerate(values.getLses())) {
    if (!(lses & empty & LseSet(1) << i))
      continue;
    Value tensor = LoadOp(load).getSource();
    std::string one(
        kernel.getArgName(getKernelArgument(tensor).getArgNumber()));
    one += " = " + spelling(lseClasses[i]).str();
    if (llvm::is_contained(seen, one))
      continue;
    text += (seen.empty() ? "" : ", ") + one;
    seen.push_back(std::move(one));
  }
  return text;
}

/// Handles the value of a store. If the value is NaN, marks the ops that made
/// the NaN, so that run() reports them.
void EmptyCases::observe(Value stored) {
  Number number = eval(stored);
  if (isOver)
    return;
  for (unsigned i = 0; i < found.size(); ++i)
    if (symbol(number).origins >> i & 1)
      found[i].isObserved = true;
}

//===----------------------------------------------------------------------===//
// Ops with effects
//===----------------------------------------------------------------------===//

void EmptyCases::runBlock(Block &block) {
  for (Operation &op : block) {
    if (isOver)
      return;
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (values.storesLse(&op) ||
          llvm::any_of(op.getResults(), [&](Value result) {
            return values.dependsOnLse(result);
          }))
        runFor(loop);
      continue;
    }
    if (!values.storesLse(&op))
      continue;
    LseSet outer = control;
    llvm::scope_exit restore([&] { control = outer; });
    auto happens = [&](Value predicate) {
      if (!predicate)
        return true;
      Decision decision = decide(predicate);
      control |= decision.lses;
      return decision.holds && !isOver;
    };
    if (auto store = dyn_cast<StoreOp>(op)) {
      if (happens(store.getPredicate()))
        observe(store.getValue());
    } else if (auto store = dyn_cast<StoreStateOp>(op)) {
      if (happens(store.getPredicate()))
        observe(store.getState());
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      Region &region = happens(branch.getCondition()) ? branch.getThenRegion()
                                                      : branch.getElseRegion();
      if (!isOver && !region.empty())
        runBlock(region.front());
    }
  }
}

/// True if an earlier iteration, in this or another case, began with the same
/// choices made before the loop and the same carried values. Gives the carried
/// values fresh symbols. Equal values still have equal symbols, and all keep
/// their classes, but the relations decided so far no longer apply.
bool EmptyCases::isKnown(scf::ForOp loop, ArrayRef<unsigned> start,
                         MutableArrayRef<Number> carried) {
  std::vector<unsigned> head(start);
  head.push_back(values.getLoopNumber(loop));
  SmallVector<unsigned> before;
  SmallVector<Number> fresh;
  for (Number number : carried) {
    auto same = llvm::find(before, number.symbol);
    unsigned first = same - before.begin();
    Symbol old = symbol(number);
    old.payload = nullptr; // this iteration reads the lses of another row
    llvm::append_range(head,
                       std::initializer_list<unsigned>{
                           first, old.cls.bits, unsigned(number.lses),
                           unsigned(number.lses >> 32), unsigned(old.origins),
                           unsigned(old.origins >> 32)});
    if (same == before.end()) {
      symbols.push_back(old);
      fresh.push_back({unsigned(symbols.size() - 1), number.lses});
    } else {
      fresh.push_back({fresh[first].symbol, number.lses});
    }
    before.push_back(number.symbol);
  }
  llvm::copy(fresh, carried.begin());
  // A case repeats the choices of the preceding case, except that the last one
  // differs. The preceding case has already inserted the heads that occur
  // before this last choice, so they do not end the case.
  return position == choices.size() && !heads.insert(std::move(head)).second;
}

void EmptyCases::runFor(scf::ForOp loop) {
  SmallVector<unsigned> start;
  for (unsigned i = 0; i < position; ++i)
    start.push_back(choices[i].chosen);
  SmallVector<Number> carried;
  for (Value initial : loop.getInitArgs())
    carried.push_back(eval(initial));
  APInt lower, upper;
  bool runs = matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) &&
              matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)) &&
              lower.slt(upper);
  while (!isOver) {
    if (isKnown(loop, start, carried)) {
      isOver = true;
      return;
    }
    if (!runs && choose(2) == 0)
      break;
    runs = false;
    epochs[values.getLoopNumber(loop)] = ++lastEpoch;
    for (auto [argument, number] : llvm::zip(loop.getRegionIterArgs(), carried))
      bind(argument, number);
    runBlock(*loop.getBody());
    for (auto [next, number] : llvm::zip(loop.getYieldedValues(), carried))
      number = isOver ? Number() : eval(next);
  }
  for (auto [result, number] : llvm::zip(loop.getResults(), carried))
    bind(result, number);
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

/// Returns the relations that the decisions so far leave possible between two
/// numbers: those of the number with the smaller symbol to the other number.
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

/// Returns the classes of `a` for which at least one of `relations` between `a`
/// and `b` is possible.
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

/// Returns the value that one branch of `branch` yields for its result `value`.
static Value getYielded(scf::IfOp branch, Value value, bool isThen) {
  scf::YieldOp yield = isThen ? branch.thenYield() : branch.elseYield();
  return yield.getOperand(cast<OpResult>(value).getResultNumber());
}

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
  // Evaluate the second operand only if the first one does not decide the
  // result.
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
        if (isOver)
          return Decision();
        Decision chosen = decide(getYielded(branch, condition, which.holds));
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

/// Decides if a float is in one of `classes`. If that is open, chooses one
/// answer in this case and the other one in a later case.
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

//===----------------------------------------------------------------------===//
// Numbers of a case
//===----------------------------------------------------------------------===//

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
    return number; // no empty row is involved
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

/// Returns a number that may be either `a` or `b`.
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
    if (isOver)
      return {};
    Number number = eval(getYielded(branch, value, decision.holds));
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
      .Case<TopKOp>([&](TopKOp best) { return computePart(best.getSource()); })
      .Case<SwapOp>([&](SwapOp swap) { return eval(swap.getSource()); })
      .Case<LoadIntoOp>([&](auto) { return make(F::Finite, 0); })
      .Case<ScanOp>([&](ScanOp scan) { return computePart(scan.getSource()); })
      .Case<arith::SelectOp>(
          [&](arith::SelectOp select) { return computeSelect(select); })
      .Case<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
            arith::MinNumFOp>([&](auto) { return computeExtreme(op); })
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
  // In a row of lses, some elements may be -inf and others finite, so the
  // second alternative for rows includes both.
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

EmptyCases::Number EmptyCases::computeExtreme(Operation *op) {
  bool isMaximum = isa<arith::MaximumFOp, arith::MaxNumFOp>(op),
       keepsNaN = isa<arith::MaximumFOp, arith::MinimumFOp>(op);
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
  // If only some lses of a row are -inf, the others are finite, and so is the
  // maximum.
  bool isMixed = bits & F::Finite && bits & F::Infinite;
  if (op.getKind() == ReduceKind::max && isMixed && !(bits & F::Inf))
    bits &= F::Finite;
  if (op.getKind() == ReduceKind::add && isMixed)
    bits |= F::Finite;
  return make(bits, row.lses);
}

/// Returns the number of a row that is computed from parts of the row `of`, as
/// by a top-k or a scan. It has the classes of `of`, but a symbol of its own,
/// since the two rows may differ.
EmptyCases::Number EmptyCases::computePart(Value of) {
  Number row = eval(of);
  return symbol(row).cls.isNaN() ? row : make(symbol(row).cls.bits, row.lses);
}

/// Returns the number of a state. The number is NaN if the lse is NaN, or if
/// the row is NaN and the state is not empty (N6). Merges make no NaN of their
/// own (N3 to N5). docs/Dialect.md has these rules.
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

/// True if one factor is zero because a row is empty, and the other factor is
/// the payload of that row.
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
  // The payload of an empty row may hold anything. So may the product of that
  // payload and another value, and a function of that payload alone. So these
  // results count as payloads, too.
  if (isa<arith::MulFOp>(op) || operands.size() == 1)
    for (Number operand : operands)
      if (LoadOp row = symbol(operand).payload)
        symbol(number).payload = row;
  return number;
}
