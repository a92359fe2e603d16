//===- Coverage.cpp - proves that every element is written ----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Proves coverage in two steps:
//
//   1. If all conditions on unknown values are left out, the stores of all rows
//      together write every element.
//   2. The row that writes an element in step 1 writes it whatever the unknown
//      values are.
//
// Each step subtracts the written elements from all elements, and shows that
// the difference is empty.
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/JoinStores.h"
#include "lib/Analysis/Prover.h"

#include "llvm/ADT/SetVector.h"

#include <set>

using namespace mlir;
using namespace mlir::presburger;
using namespace mlafix;

/// Returns the condition without the constraints that depend on unknowns.
static Condition dropUncertain(const RowModel &model,
                               const Condition &condition) {
  Condition certain;
  for (const Conjunct &conjunct : condition.disjuncts) {
    Conjunct &kept = certain.disjuncts.emplace_back();
    for (const Constraint &constraint : conjunct)
      if (!model.isUncertain(constraint.linear))
        kept.push_back(constraint);
    if (kept.empty())
      return Condition::always();
  }
  return certain;
}

/// True if the rows, the iterations and the stored element of `store` do not
/// depend on unknowns.
bool Prover::isReliable(const RowAccess &store) const {
  auto isUncertain = [&](Var var) { return model[var].isUncertain; };
  return !model.isUncertain(store.indices) &&
         llvm::none_of(store.loops, isUncertain) &&
         llvm::none_of(model.getGridIndices(), isUncertain);
}

/// Matches a store that every row executes unconditionally, with only grid
/// indices and constants as indices. Returns one number for each index: the
/// constant, or -1 for a grid index. All rows together then write every element
/// that has these constants at their positions. Returns nullopt if the store
/// does not match.
static std::optional<std::vector<int64_t>>
findPlainPlace(RowModel &model, ForallOp grid, const RowAccess &store) {
  unsigned argument = store.access.getArgNumber();
  if (store.access.predicate || !store.loops.empty() ||
      store.access.op->getParentOp() != grid)
    return std::nullopt;
  ArrayRef<Var> gridIndices = model.getGridIndices();
  llvm::SmallSetVector<Var, 4> used;
  std::vector<int64_t> place;
  for (auto [dim, index] : llvm::enumerate(store.indices)) {
    Linear size = model.getSize(argument, dim);
    if (index.isConstant()) {
      if (!size.isConstant() || index.constant < 0 ||
          index.constant >= size.constant)
        return std::nullopt;
      place.push_back(index.constant);
      continue;
    }
    std::optional<Var> var = index.getVar();
    const Var *found = var ? llvm::find(gridIndices, *var) : nullptr;
    if (!found || found == gridIndices.end() || !used.insert(*var))
      return std::nullopt;
    Value extent = grid.getExtents()[found - gridIndices.begin()];
    if (!(model.getValue(extent) == size))
      return std::nullopt;
    place.push_back(-1);
  }
  bool isWhole =
      store.access.isRow || store.indices.size() == model.getRank(argument);
  if (!isWhole || used.size() != gridIndices.size())
    return std::nullopt;
  return place;
}

/// True if stores that findPlainPlace() matches, all with constants at the same
/// positions, cover the tensor. This holds for most kernels.
bool Prover::isPlainCover(ArrayRef<const RowAccess *> stores) {
  auto grid = dyn_cast<ForallOp>(kernel.getGrid());
  std::set<std::vector<int64_t>> places;
  for (const RowAccess *store : stores)
    if (grid && isReliable(*store))
      if (auto place = findPlainPlace(model, grid, *store))
        places.insert(*place);
  if (places.empty())
    return false;
  unsigned argument = stores.front()->access.getArgNumber();
  size_t needed = 1;
  const std::vector<int64_t> &first = *places.begin();
  for (auto [dim, index] : llvm::enumerate(first)) {
    if (index >= 0)
      needed *= model.getSize(argument, dim).constant;
    if (needed > places.size()) // checked before the product overflows
      return false;
  }
  return llvm::count_if(places, [&](const std::vector<int64_t> &place) {
           return llvm::equal(place, first, [](int64_t x, int64_t y) {
             return (x < 0) == (y < 0);
           });
         }) == int64_t(needed);
}

/// Restricts the system to launches that do not omit the argument and that
/// satisfy all launch checks.
void Prover::assumeLaunch(LinearSystem &system, unsigned argument) {
  system.restrict(model.getLaunchCheck());
  system.restrict(model.isGiven(argument));
}

/// Adds a column for every value that `access` depends on and that is fixed per
/// launch: sizes, scalars, presence, and arithmetic on them. With these
/// columns, both sides of a set difference refer to the same launch.
void Prover::addLaunch(LinearSystem &system, const RowAccess &access) {
  for (Var var : model.getVariables(access, model.getGridIndices()))
    if (model[var].isLaunch && !model[var].isUncertain)
      (void)system.getColumn(var);
}

/// Restricts the system to points at which `store` accesses `element`.
void Prover::placeElement(LinearSystem &system, const RowAccess &store,
                          ArrayRef<Form> element) {
  for (auto [index, column] : llvm::zip(store.indices, element))
    system.restrict(system.getForm(index).add(column, -1), /*isEquality=*/true);
}

/// Restricts the system to rows and iterations in which `store` accesses
/// `element`, whatever the unknown values are.
void Prover::placeReliable(LinearSystem &system, const RowAccess &store,
                           ArrayRef<Form> element) {
  for (Var var : llvm::concat<const Var>(model.getGridIndices(), store.loops))
    (void)system.getColumn(var);
  placeElement(system, store, element);
  system.restrict(dropUncertain(model, store.condition));
}

LinearSystem mlafix::makeElements(RowModel &model, Work &work, KernelOp kernel,
                                  unsigned argument,
                                  SmallVector<Form> &element) {
  LinearSystem system(model, work);
  for (unsigned dim = 0; dim < model.getRank(argument); ++dim)
    element.push_back(system.addColumn());
  for (auto [dim, column] : llvm::enumerate(element)) {
    system.restrict(column);
    system.restrict(system.getForm(model.getSize(argument, dim)) - column - 1);
  }
  return system;
}

/// Projects the system onto its first `numDims` columns. If that exceeds the
/// budget, splits the system into one case per value of a remainder and tries
/// again. Returns nullopt if the system is too large, or if the budget runs
/// out.
static std::optional<PresburgerSet> projectCases(LinearSystem &system,
                                                 unsigned numDims) {
  if (system.isOverBudget())
    return std::nullopt;
  std::optional<PresburgerSet> set = system.project(numDims);
  return set || !system.splitRemainders() ? set : system.project(numDims);
}

/// Proves the first step (see the top of this file): without the conditions on
/// unknown values, the stores of all rows write every element.
Answer Prover::coverRows(unsigned argument,
                         ArrayRef<const RowAccess *> stores) {
  SmallVector<Form> element;
  LinearSystem elements = makeElements(model, work, kernel, argument, element);
  assumeLaunch(elements, argument);
  for (const RowAccess *store : stores)
    addLaunch(elements, *store);
  unsigned dims = elements.getNumColumns();
  PresburgerSet written =
      PresburgerSet::getEmpty(PresburgerSpace::getSetSpace(dims));
  for (const RowAccess *store : stores) {
    if (!isReliable(*store))
      continue;
    LinearSystem one = elements;
    placeReliable(one, *store, element);
    std::optional<PresburgerSet> places = projectCases(one, dims);
    if (!places)
      return makeUnknown(Question::Coverage, argument, store, kTooManyCases);
    written.unionInPlace(*places);
  }
  std::optional<PresburgerSet> missed;
  if (!elements.isOverBudget())
    missed = subtract(elements.getSet(), written, work);
  std::optional<bool> none =
      missed ? isEmpty(*missed, work) : std::optional<bool>();
  if (!none)
    return makeUnknown(Question::Coverage, argument, nullptr, kTooManyCases);
  if (*none)
    return {Question::Coverage, argument};
  return conclude(Question::Coverage, argument,
                  stores.empty() ? nullptr : stores.front(), elements,
                  elements.findPoint(*missed));
}

/// True if a loop of the kernel around `store` is not among `loops`. Loops over
/// the elements or groups of the access itself do not count.
static bool hasOtherLoops(const RowModel &model, const RowAccess &store,
                          ArrayRef<Var> loops) {
  return llvm::any_of(store.loops, [&](Var var) {
    return !model[var].isOfAccess && !llvm::is_contained(loops, var);
  });
}

/// Returns the points of `cases` at which no store of `stores` writes the
/// element that `access` accesses. The first columns of a point are `element`,
/// the indices of that element. If a loop contains a store but not `access`, it
/// is enough that the store writes the element in some iteration. Returns
/// nullopt if there are too many cases.
std::optional<PresburgerSet>
Prover::subtractStores(LinearSystem &cases, ArrayRef<Form> element,
                       const RowAccess &access,
                       ArrayRef<const RowAccess *> stores) {
  SmallVector<const RowAccess *> usable;
  for (const RowAccess *store : stores) {
    if (haveOtherConstants(*store, access))
      continue;
    bool isUncertain = model.isUncertain(store->condition) ||
                       model.isUncertain(store->indices);
    addLaunch(cases, *store);
    // An unknown may have another value in each iteration. So a store in a loop
    // that does not contain `access` is usable only if the store depends on no
    // unknown.
    if (hasOtherLoops(model, *store, access.loops)) {
      bool isSure = !isUncertain && llvm::none_of(store->loops, [&](Var var) {
        return model[var].isUncertain;
      });
      if (!isSure)
        continue;
      usable.push_back(store);
      continue;
    }
    usable.push_back(store);
    // Add every unknown that the store depends on, with its range and
    // definition.
    for (const Linear &index : store->indices)
      if (std::optional<Var> var = index.getVar();
          !var || !model[*var].isOfAccess)
        (void)cases.getForm(index);
    for (const Conjunct &conjunct : store->condition.disjuncts)
      for (const Constraint &constraint : conjunct)
        (void)cases.getForm(constraint.linear);
  }
  unsigned dims = cases.getNumColumns();
  PresburgerSet written =
      PresburgerSet::getEmpty(PresburgerSpace::getSetSpace(dims));
  for (const RowAccess *store : usable) {
    LinearSystem one = cases;
    one.clear();
    for (Var var : store->loops)
      (void)one.getColumn(var);
    placeElement(one, *store, element);
    one.restrict(store->condition);
    std::optional<PresburgerSet> places = projectCases(one, dims);
    if (!places)
      return std::nullopt;
    written.unionInPlace(*places);
  }
  if (cases.isOverBudget())
    return std::nullopt;
  return subtract(cases.getSet(), written, work);
}

/// Proves the second step (see the top of this file): the row that writes an
/// element in the first step writes it whatever the unknown values are.
Answer Prover::coverCases(unsigned argument,
                          ArrayRef<const RowAccess *> stores) {
  SmallVector<const RowAccess *> reliable;
  llvm::copy_if(stores, std::back_inserter(reliable),
                [&](const RowAccess *store) { return isReliable(*store); });
  for (const RowAccess *store : reliable) {
    SmallVector<Form> element;
    LinearSystem cases = makeElements(model, work, kernel, argument, element);
    assumeLaunch(cases, argument);
    placeReliable(cases, *store, element);
    std::optional<PresburgerSet> missed =
        subtractStores(cases, element, *store, reliable);
    std::optional<bool> none =
        missed ? isEmpty(*missed, work) : std::optional<bool>();
    if (!none)
      return makeUnknown(Question::Coverage, argument, store, kTooManyCases);
    if (!*none)
      return conclude(Question::Coverage, argument, store, cases,
                      cases.findPoint(*missed));
  }
  return {Question::Coverage, argument};
}

Answer Prover::proveCoverage(unsigned argument) {
  if (isPlainCover(accessesOf(argument, true)))
    return {Question::Coverage, argument};
  std::vector<RowAccess> joined = joinStores(model, accessesOf(argument, true));
  SmallVector<const RowAccess *> stores = pointersTo(joined);
  Answer answer = coverRows(argument, stores);
  bool isUncertain = llvm::any_of(stores, [&](const RowAccess *store) {
    return model.isUncertain(store->condition);
  });
  if (answer.verdict != Verdict::Proved || !isUncertain)
    return answer;
  return coverCases(argument, stores);
}
