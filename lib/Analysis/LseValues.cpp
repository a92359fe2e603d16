//===- LseValues.cpp - values that depend on a log-sum-exp ----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/LseValues.h"

#include "dialect/MemoryAccess.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlafix;

/// True if the name of an argument contains the word "lse" or "lses", as
/// "prefix_lse" does.
static bool isLseName(StringRef name) {
  SmallVector<StringRef> words;
  name.split(words, '_');
  return llvm::any_of(words, [](StringRef word) {
    return word.equals_insensitive("lse") || word.equals_insensitive("lses");
  });
}

LseValues::LseValues(KernelOp kernel) : kernel(kernel), dependent(1) {
  auto note = [&](Value payload, Value lse) {
    if (lse)
      lseTensors.insert(lse);
    if (payload && lse)
      states.insert({payload, lse});
  };
  bool loads = false;
  kernel.walk([&](Operation *op) {
    if (auto load = dyn_cast<LoadStateOp>(op))
      note(load.getOut(), load.getLse());
    else if (auto store = dyn_cast<StoreStateOp>(op))
      note(store.getOut(), store.getLse());
    loads |= isa<LoadOp>(op);
  });
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (Value argument = kernel.getBody().getArgument(i);
        isa<MemRefType>(argument.getType()) && isLseName(kernel.getArgName(i)))
      lseTensors.insert(argument);
  // Most kernels load lses only as parts of states. The values of these kernels
  // need no numbers.
  bool isLoaded = loads && llvm::any_of(lseTensors, [](Value lse) {
                    return llvm::any_of(lse.getUsers(), [](Operation *user) {
                      return isa<LoadOp>(user);
                    });
                  });
  if (!isLoaded)
    return;
  for (const MemoryAccess &access : collectAccesses(kernel))
    if (access.isWrite)
      written.insert(access.memref);
  loops.push_back(0); // for number 0, which no value has
  for (Value argument : kernel.getBody().getArguments())
    number(argument, 0, /*isDependent=*/false);
  visit(kernel.getBody().front(), 0);
}

bool LseValues::isLse(Value tensor) const {
  auto type = dyn_cast<MemRefType>(tensor.getType());
  return type && isa<FloatType>(type.getElementType()) &&
         lseTensors.contains(tensor);
}

std::optional<unsigned> LseValues::getLse(Value value) const {
  auto found = lseOfNumber.find(getNumber(value));
  if (found == lseOfNumber.end())
    return std::nullopt;
  return found->second;
}

LseSet LseValues::getLsesOfPayload(LoadOp load) const {
  SmallVector<unsigned> indices, others;
  auto numbersOf = [&](LoadOp op, SmallVector<unsigned> &result) {
    result.clear();
    for (Value index : op.getIndices())
      result.push_back(getNumber(index));
    llvm::sort(result);
  };
  numbersOf(load, indices);
  bool isPaired = llvm::any_of(
      states, [&](const auto &pair) { return pair.first == load.getSource(); });
  LseSet set = 0;
  for (auto [i, lse] : llvm::enumerate(lses)) {
    LoadOp other = lse;
    if (isPaired && !states.contains({load.getSource(), other.getSource()}))
      continue;
    numbersOf(other, others);
    if (indices == others)
      set |= LseSet(1) << i;
  }
  return set;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// True if equal operands give equal results. This holds for pure ops, and for
/// loads while their memory does not change (see mayDiffer).
static bool isRepeatable(Operation &op) {
  if (op.getNumRegions() || op.getNumResults() != 1)
    return false;
  return isa<LoadOp>(op) || isMemoryEffectFree(&op);
}

/// True if loads `first` and `last` may read different values because the
/// kernel writes the tensor.
bool LseValues::mayDiffer(Operation *first, Operation &last) const {
  auto load = dyn_cast<LoadOp>(first);
  if (!load || !written.contains(load.getSource()))
    return false;
  Operation *at = &last;
  for (; at->getBlock() != first->getBlock(); at = at->getParentOp()) {
    if (isa<KernelOp>(at))
      return true; // the first load is in another branch
    Operation *front = &at->getBlock()->front();
    if (front != at && (mayWrite(front) || mayWriteBetween(front, at)))
      return true;
    if (isa<scf::ForOp>(at->getParentOp()) && mayWrite(at->getParentOp()))
      return true; // the write may be in an earlier iteration
  }
  return mayWriteBetween(first, at);
}

Operation *LseValues::findAlike(Operation &op) {
  auto hash = OperationEquivalence::computeHash(
      &op, [&](Value v) { return llvm::hash_value(getNumber(v)); },
      OperationEquivalence::ignoreHashValue,
      OperationEquivalence::IgnoreLocations);
  SmallVector<Operation *, 1> &candidates = alike[size_t(hash)];
  for (Operation *candidate : candidates)
    if (OperationEquivalence::isEquivalentTo(
            &op, candidate,
            [&](Value a, Value b) {
              unsigned number = getNumber(a);
              return success(number && number == getNumber(b));
            },
            nullptr, OperationEquivalence::IgnoreLocations) &&
        !mayDiffer(candidate, op))
      return candidate;
  candidates.push_back(&op);
  return nullptr;
}

void LseValues::number(Value value, unsigned loop, bool isDependent) {
  numbers[value] = ++count;
  loops.push_back(loop);
  dependent.resize(count + 1);
  dependent[count] = isDependent;
}

bool LseValues::isDependent(Operation &op) const {
  auto depends = [&](Value value) { return dependsOnLse(value); };
  return anyOp(&op, [&](Operation *inner) {
    auto load = dyn_cast<LoadOp>(inner);
    return (load && isLse(load.getSource())) ||
           llvm::any_of(inner->getOperands(), depends);
  });
}

void LseValues::visit(Block &block, unsigned loop) {
  for (Operation &op : block)
    visit(op, loop);
}

void LseValues::visit(Operation &op, unsigned loop) {
  if (isRepeatable(op))
    if (Operation *other = findAlike(op)) {
      numbers[op.getResult(0)] = getNumber(other->getResult(0));
      return;
    }
  bool depends = isDependent(op);
  for (Value result : op.getResults())
    number(result, loop, depends);
  auto load = dyn_cast<LoadOp>(op);
  if (load && isLse(load.getSource()) && lses.size() < 64) {
    lseOfNumber[count] = lses.size();
    lses.push_back(load);
  }
  noteStore(op);
  if (isa<scf::ForOp>(op)) {
    loop = loopNumbers.size() + 1;
    loopNumbers[&op] = loop;
  }
  for (Region &region : op.getRegions())
    for (Block &block : region) {
      for (Value argument : block.getArguments())
        number(argument, loop, depends && !argument.getType().isIndex());
      visit(block, loop);
    }
}

void LseValues::noteStore(Operation &op) {
  Value stored;
  if (auto store = dyn_cast<StoreOp>(op))
    stored = store.getValue();
  else if (auto store = dyn_cast<StoreStateOp>(op))
    stored = store.getState();
  if (!stored || !dependsOnLse(stored))
    return;
  for (Operation *at = &op; at && at != kernel; at = at->getParentOp())
    stores.insert(at);
}
