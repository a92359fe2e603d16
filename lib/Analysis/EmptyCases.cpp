//===- EmptyCases.cpp - a row's program where rows are empty --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/EmptyCases.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;
using namespace mlafix;

/// Ops that are computed, over all cases of a kernel: some hundred
/// microseconds.
static constexpr unsigned kBudget = 8192;
static constexpr unsigned kMostChoices = 64;
/// Nested expressions, as far as they are followed.
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

/// One of `count` ways to go on. Each is a case.
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

/// To the next case; false after the last.
bool EmptyCases::advance() {
  while (!choices.empty() && choices.back().chosen + 1 == choices.back().count)
    choices.pop_back();
  if (choices.empty() || budget == 0)
    return false;
  ++choices.back().chosen;
  return true;
}

/// Begins to compute a value, unless that is too much.
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

/// A store writes the value: what made it NaN is found.
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

/// Whether the loop carried the same before, when all that precedes it was the
/// same. Gives what is carried new symbols, of which nothing is known but this.
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
    old.payload = nullptr; // of an iteration that is over
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
  // On the way to the choice that is new, the heads are those of earlier cases.
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
