//===- Promises.cpp - what holds because the author says so ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Prover.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlafix;

static std::string describeDistinct(KernelOp kernel, unsigned table) {
  return ("the entries of " + kernel.getArgName(table) +
          " that are not negative are distinct")
      .str();
}

std::string mlafix::describePromise(Operation *op) {
  if (auto assumption = dyn_cast<AssumeOp>(op))
    return assumption.getText().str();
  return describeDistinct(
      cast<KernelOp>(op->getParentOp()),
      getKernelArgument(cast<DistinctOp>(op).getTable()).getArgNumber());
}

static std::string describePromises(ArrayRef<StringRef> promises) {
  llvm::SmallSetVector<StringRef, 4> texts(promises.begin(), promises.end());
  return "the kernel assumes " + llvm::join(texts, ", ");
}

std::optional<std::string> Prover::keepByPromise(const System &wrong,
                                                 const RowAccess &access) {
  if (access.promises.empty())
    return std::nullopt;
  System promised = wrong;
  promised.restrict(access.assumed, 0);
  if (isEmpty(promised) != true)
    return std::nullopt;
  return describePromises(access.promises);
}

static bool isDistinct(Value table) {
  return llvm::any_of(table.getUsers(),
                      [](Operation *user) { return isa<DistinctOp>(user); });
}

/// Whether the value of `load` is an entry of its table wherever it happens.
bool Prover::isEntry(const RowAccess &load) {
  for (unsigned dim = 0; dim < load.indices.size(); ++dim) {
    Verdict verdict = askIndex(load, dim).verdict;
    if (verdict != Verdict::Proved && verdict != Verdict::Promised)
      return false;
  }
  return true;
}

/// Whether the load happens in row `instance` at every point of the pair: what
/// decides that, each for itself, holds at all of them.
bool Prover::isLoaded(const System &pair, LoadOp load, unsigned instance) {
  auto isCertain = [&](const Condition &fails) {
    System without = pair;
    without.restrict(fails, instance);
    return isEmpty(without) == true;
  };
  unsigned table = getKernelArgument(load.getSource()).getArgNumber();
  if (kernel.isArgOptional(table) &&
      !isCertain(Condition::of(Linear::of(model.getPresent(table)),
                               /*isEquality=*/true)))
    return false;
  if (load.getPredicate() &&
      !isCertain(model.getCondition(load.getPredicate(), false)))
    return false;
  for (Operation *op = load, *parent = op->getParentOp();
       !isa<ForallOp, RaggedForallOp, KernelOp>(parent);
       op = parent, parent = op->getParentOp())
    if (auto branch = dyn_cast<scf::IfOp>(parent)) {
      bool isThen = op->getParentRegion() == &branch.getThenRegion();
      if (!isCertain(model.getCondition(branch.getCondition(), !isThen)))
        return false;
    }
  return true;
}

const RowAccess *Prover::findAccess(LoadOp load) const {
  for (const RowAccess &access : model.getAccesses())
    if (access.access.op == load.getOperation())
      return &access;
  return nullptr;
}

/// The entries of tables which the access's element depends on.
SmallVector<Var, 2> Prover::findEntries(const RowAccess &access,
                                        bool isPromised) {
  llvm::SmallSetVector<Var, 8> used;
  auto add = [&](const Linear &linear) {
    for (auto [var, coefficient] : linear.terms)
      used.insert(var);
  };
  for (const Linear &index : access.indices)
    add(index);
  SmallVector<Var, 2> entries;
  for (size_t i = 0; i < used.size(); ++i) {
    const Variable &variable = model[used[i]];
    for (const Conjunct &conjunct : variable.definition.disjuncts)
      for (const Constraint &constraint : conjunct)
        add(constraint.linear);
    auto load =
        variable.value ? variable.value.getDefiningOp<LoadOp>() : LoadOp();
    bool isTable = load && variable.kind == Variable::Unknown &&
                   !load.getType().isInteger(1) &&
                   (!isPromised || isDistinct(load.getSource()));
    const RowAccess *found = isTable ? findAccess(load) : nullptr;
    if (found && isEntry(*found))
      entries.push_back(used[i]);
  }
  return entries;
}

/// Whether the pair has no point if the entry `x` of the first row and the
/// entry `y` of the second are of one table, in which no two entries of at
/// least 0 are equal.
bool Prover::areApart(const System &pair, Var x, Var y) {
  auto a = model[x].value.getDefiningOp<LoadOp>(),
       b = model[y].value.getDefiningOp<LoadOp>();
  if (a.getSource() != b.getSource() || !isLoaded(pair, a, 0) ||
      !isLoaded(pair, b, 1))
    return false;
  auto isNone = [&](auto restrict) {
    System one = pair;
    restrict(one);
    return isEmpty(one) == true;
  };
  auto difference = [&](System &system) {
    Form form = system.getForm(Linear::of(y), 1);
    return form.add(system.getForm(Linear::of(x), 0), -1);
  };
  for (int64_t sign : {1, -1})
    if (!isNone([&](System &system) {
          Form apart;
          apart.constant = -1;
          system.restrict(apart.add(difference(system), sign));
        }))
      return false;
  bool isPadding = !isNone([&](System &system) {
    system.restrict(difference(system), /*isEquality=*/true);
    Form negative;
    negative.constant = -1;
    system.restrict(negative.add(system.getForm(Linear::of(x), 0), -1));
  });
  return !isPadding && isNone([&](System &system) {
    for (auto [i, j] : llvm::zip(a.getIndices(), b.getIndices()))
      system.restrict(system.getForm(model.getValue(i), 0)
                          .add(system.getForm(model.getValue(j), 1), -1),
                      /*isEquality=*/true);
  });
}

std::string Prover::findTable(const System &pair, const RowAccess &a,
                              const RowAccess &b) {
  for (Var x : findEntries(a, /*isPromised=*/false))
    for (Var y : findEntries(b, /*isPromised=*/false))
      if (areApart(pair, x, y)) {
        auto load = model[x].value.getDefiningOp<LoadOp>();
        unsigned table = getKernelArgument(load.getSource()).getArgNumber();
        return kernel.getArgName(table).str();
      }
  return "";
}

std::optional<std::string>
Prover::keepByPromise(System pair, const RowAccess &a, const RowAccess &b) {
  SmallVector<StringRef> promises(a.promises.begin(), a.promises.end());
  llvm::append_range(promises, b.promises);
  pair.restrict(a.assumed, 0);
  pair.restrict(b.assumed, 1);
  if (!promises.empty() && isEmpty(pair) == true)
    return describePromises(promises);
  if (kernel.getBody().getOps<DistinctOp>().empty())
    return std::nullopt;
  // Elsewhere nothing is accessed: bounds guards see to it.
  for (const Linear &index : a.indices)
    pair.restrict(pair.getForm(index, 0));
  for (Var x : findEntries(a, /*isPromised=*/true))
    for (Var y : findEntries(b, /*isPromised=*/true))
      if (areApart(pair, x, y)) {
        auto load = model[x].value.getDefiningOp<LoadOp>();
        return describeDistinct(
            kernel, getKernelArgument(load.getSource()).getArgNumber());
      }
  return std::nullopt;
}
