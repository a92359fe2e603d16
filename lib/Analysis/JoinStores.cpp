//===- JoinStores.cpp - joins the stores of all branches ------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A store executes if all of its guards hold. A guard is the condition of a
// branch or a predicate, possibly negated. Guards are propositions over atoms:
// comparisons and unknown booleans. Several stores cover all cases if the
// disjunction of their guards holds for all values of the atoms. To decide
// this, the search splits on one atom at a time. In a chain of branches, each
// atom settles one store, so there is only one split for each branch.
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/JoinStores.h"

#include <map>
#include <set>
#include <tuple>

using namespace mlir;
using namespace mlafix;

namespace {
/// A boolean and the value that it must have for a store to execute.
using Guard = std::pair<Value, bool>;
using Guards = SmallVector<Guard, 4>;

/// Evaluates the booleans of a row under assumptions about their atoms.
class Propositions {
public:
  explicit Propositions(RowModel &model) : model(model) {}

  /// True if in every case, at least one store executes, that is, all of its
  /// guards hold. False if no store executes in some case, or if the budget
  /// runs out.
  bool isAlways(ArrayRef<Guards> stores);

private:
  /// An atomic proposition: a linear constraint, a relation of two floats, or
  /// an opaque boolean.
  struct Atom {
    std::vector<std::pair<Var, int64_t>> terms;
    int64_t constant = 0;
    /// 0: a Constraint >= 0; 1: a Constraint == 0; 2 + n: a comparison of
    /// floats with outcomes n, as in FloatComparison.
    int64_t kind = 0;
    void *opaque = nullptr;
    bool operator<(const Atom &other) const {
      return std::tie(terms, constant, kind, opaque) <
             std::tie(other.terms, other.constant, other.kind, other.opaque);
    }
  };
  /// An atom's number, and true if the atom is negated.
  using Literal = std::pair<unsigned, bool>;

  std::optional<bool> evaluate(Value value, unsigned depth = 0);
  std::optional<bool> evaluateOp(Value value, unsigned depth);
  std::optional<bool> evaluateAtom(Value value);
  Literal getLiteral(Value value);
  Literal findLiteral(Value value);
  Literal addAtom(Atom atom, bool isNegated);
  Literal addConstraint(const Constraint &constraint, bool isNegated);
  /// Evaluates the disjunction of the stores' guards under the current
  /// assumptions. If these do not decide it, returns nullopt and sets `open` to
  /// the atom to split on.
  std::optional<bool> evaluateStores(ArrayRef<Guards> stores);

  RowModel &model;
  std::map<Atom, unsigned> atoms;
  llvm::DenseMap<Value, Literal> literals;
  std::vector<std::optional<bool>> assumed; // indexed by atom
  // Cached results of evaluate() under the current assumptions.
  llvm::DenseMap<Value, std::optional<bool>> known;
  std::optional<unsigned> open;
  int64_t steps = 0;

  static constexpr int64_t kMaxSteps = 1 << 19;
  static constexpr unsigned kMaxDepth = 256;
};
} // namespace

Propositions::Literal Propositions::addAtom(Atom atom, bool isNegated) {
  auto [it, isNew] = atoms.try_emplace(std::move(atom), assumed.size());
  if (isNew)
    assumed.push_back(std::nullopt);
  return {it->second, isNegated};
}

/// Returns the literal of a constraint. The constraints x >= 0 and -x - 1 >= 0
/// are each other's negation, so they share one atom, negated in one of them.
Propositions::Literal Propositions::addConstraint(const Constraint &constraint,
                                                  bool isNegated) {
  Linear linear = constraint.linear;
  if (!linear.terms.empty() && linear.terms.front().second < 0)
    if (std::optional<Linear> opposite = scale(linear, -1)) {
      bool fits =
          constraint.isEquality ||
          !__builtin_sub_overflow(opposite->constant, 1, &opposite->constant);
      if (fits) {
        linear = *opposite;
        isNegated ^= !constraint.isEquality;
      }
    }
  Atom atom;
  atom.terms.assign(linear.terms.begin(), linear.terms.end());
  atom.constant = linear.constant;
  atom.kind = constraint.isEquality;
  return addAtom(std::move(atom), isNegated);
}

Propositions::Literal Propositions::findLiteral(Value value) {
  for (bool holds : {true, false}) {
    Condition condition = model.getCondition(value, holds);
    if (condition.disjuncts.size() == 1 &&
        condition.disjuncts.front().size() == 1)
      return addConstraint(condition.disjuncts.front().front(), !holds);
  }
  Atom atom;
  if (std::optional<FloatComparison> floats = model.getFloatComparison(value)) {
    // If the outcomes include "unordered" (bit 3), use the negation of their
    // complement, so that a comparison and its negation share one atom.
    bool isNegated = floats->outcomes >> 3 & 1;
    unsigned outcomes = isNegated ? ~floats->outcomes & 15 : floats->outcomes;
    atom.terms = {{floats->relation, 1}};
    atom.kind = 2 + outcomes;
    return addAtom(std::move(atom), isNegated);
  }
  atom.opaque = value.getAsOpaquePointer();
  return addAtom(std::move(atom), false);
}

Propositions::Literal Propositions::getLiteral(Value value) {
  auto it = literals.find(value);
  if (it != literals.end())
    return it->second;
  return literals[value] = findLiteral(value);
}

std::optional<bool> Propositions::evaluateAtom(Value value) {
  if (std::optional<int64_t> number = getInteger(value))
    return *number != 0;
  auto [atom, isNegated] = getLiteral(value);
  if (assumed[atom])
    return *assumed[atom] != isNegated;
  if (!open)
    open = atom;
  return std::nullopt;
}

/// Evaluates a boolean op; other values are atoms.
std::optional<bool> Propositions::evaluateOp(Value value, unsigned depth) {
  auto choose = [&](Value condition, Value x, Value y) -> std::optional<bool> {
    std::optional<bool> p = evaluate(condition, depth + 1);
    if (p)
      return evaluate(*p ? x : y, depth + 1);
    std::optional<bool> a = evaluate(x, depth + 1), b = evaluate(y, depth + 1);
    return a && b && *a == *b ? a : std::nullopt;
  };
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::AndIOp, arith::OrIOp>(op)) {
    bool decides = isa<arith::OrIOp>(op);
    std::optional<bool> a = evaluate(op->getOperand(0), depth + 1);
    if (a == decides)
      return a;
    std::optional<bool> b = evaluate(op->getOperand(1), depth + 1);
    return b == decides ? b : a && b ? a : std::nullopt;
  }
  if (isa_and_nonnull<arith::XOrIOp>(op)) {
    std::optional<bool> a = evaluate(op->getOperand(0), depth + 1),
                        b = evaluate(op->getOperand(1), depth + 1);
    return a && b ? std::optional(*a != *b) : std::nullopt;
  }
  if (auto select = dyn_cast_if_present<arith::SelectOp>(op))
    return choose(select.getCondition(), select.getTrueValue(),
                  select.getFalseValue());
  if (auto branch = dyn_cast_if_present<scf::IfOp>(op)) {
    unsigned number = cast<OpResult>(value).getResultNumber();
    return choose(branch.getCondition(), branch.thenYield().getOperand(number),
                  branch.elseYield().getOperand(number));
  }
  return evaluateAtom(value);
}

std::optional<bool> Propositions::evaluate(Value value, unsigned depth) {
  auto it = known.find(value);
  if (it != known.end())
    return it->second;
  ++steps;
  std::optional<bool> result = depth > kMaxDepth || steps > kMaxSteps
                                   ? evaluateAtom(value)
                                   : evaluateOp(value, depth);
  return known[value] = result;
}

std::optional<bool> Propositions::evaluateStores(ArrayRef<Guards> stores) {
  known.clear();
  open.reset();
  bool isOpen = false;
  for (const Guards &guards : stores) {
    std::optional<bool> all = true;
    for (auto [value, wanted] : guards) {
      std::optional<bool> one = evaluate(value);
      if (one && *one != wanted) {
        all = false;
        break;
      }
      if (!one)
        all = std::nullopt;
    }
    if (all == true)
      return true;
    isOpen |= !all;
  }
  return isOpen ? std::nullopt : std::optional(false);
}

bool Propositions::isAlways(ArrayRef<Guards> stores) {
  std::optional<bool> now = evaluateStores(stores);
  if (now || steps > kMaxSteps || !open)
    return now == true;
  unsigned atom = *open;
  bool isAlways = true;
  for (bool value : {true, false})
    if (isAlways) {
      assumed[atom] = value;
      isAlways = this->isAlways(stores);
    }
  assumed[atom].reset();
  return isAlways;
}

namespace {
/// Stores to one argument that differ at most in conditions and slices.
struct Group {
  std::vector<const RowAccess *> stores;
  SmallVector<Linear, 4> indices;     ///< without the indices of joined slices
  SmallVector<Var, 2> loops;          ///< without the loops over joined slices
  SmallVector<Operation *, 2> forOps; ///< the loops around the stores
  int64_t size = 0; ///< row length if slices of rows are joined, else 0

  bool isLike(const Group &other) const {
    return indices == other.indices && loops == other.loops &&
           forOps == other.forOps && size == other.size;
  }
};
} // namespace

/// Returns the guards of a store: its predicate, then the conditions of the
/// branches around it, from the innermost outward. Appends the `scf.for` ops
/// around the store to `forOps`. Returns nullopt if an op other than `scf.if`
/// and `scf.for` contains the store.
static std::optional<Guards>
getGuards(const RowAccess &store, SmallVector<Operation *, 2> *forOps = {}) {
  Guards guards;
  if (store.access.predicate)
    guards.push_back({store.access.predicate, true});
  for (Operation *op = store.access.op, *parent = op->getParentOp();
       !isa<ForallOp, RaggedForallOp, KernelOp>(parent);
       op = parent, parent = op->getParentOp()) {
    auto branch = dyn_cast<scf::IfOp>(parent);
    if (branch)
      guards.push_back({branch.getCondition(),
                        op->getParentRegion() == &branch.getThenRegion()});
    else if (!isa<scf::ForOp>(parent))
      return std::nullopt;
    else if (forOps)
      forOps->push_back(parent);
  }
  return guards;
}

/// Returns a group with only `store`. If the row length is a constant, stores
/// to other slices of the row may join the group. Otherwise, only stores to the
/// same slice may.
static Group getGroup(RowModel &model, const RowAccess &store) {
  Group group = {{&store}, store.indices, store.loops, {}};
  const MemoryAccess &access = store.access;
  if (!access.isRow || access.isPart())
    return group;
  Linear size = model.getSize(access.getArgNumber(), access.indices.size());
  if (!size.isConstant())
    return group;
  group.size = size.constant;
  if (access.slice) {
    group.indices.pop_back();
    group.loops.pop_back();
  }
  return group;
}

/// Removes the guards that all stores share from `guards`, and returns them.
static Guards splitShared(std::vector<Guards> &guards) {
  Guards shared = guards.front();
  for (ArrayRef<Guard> one : guards)
    llvm::erase_if(shared, [&](const Guard &guard) {
      return !llvm::is_contained(one, guard);
    });
  for (Guards &one : guards)
    llvm::erase_if(one, [&](const Guard &guard) {
      return llvm::is_contained(shared, guard);
    });
  return shared;
}

/// True if in every case, each element of the group's row (or its only element)
/// is written by some store whose guards hold.
static bool coverRow(RowModel &model, const Group &group,
                     ArrayRef<Guards> guards) {
  // Between two neighbouring ends of slices, a store writes either all elements
  // or none. So it suffices to look at the first of these elements.
  std::set<int64_t> begins = {0};
  for (const RowAccess *store : group.stores)
    if (group.size && store->access.slice)
      begins.insert({store->access.slice->begin, store->access.slice->end});
  Propositions propositions(model);
  return llvm::all_of(begins, [&](int64_t begin) {
    if (begin > 0 && begin >= group.size)
      return true;
    std::vector<Guards> here;
    for (auto [store, own] : llvm::zip(group.stores, guards)) {
      std::optional<RowSlice> slice = store->access.slice;
      if (!group.size || !slice ||
          (slice->begin <= begin && begin < slice->end))
        here.push_back(own);
    }
    return propositions.isAlways(here);
  });
}

/// Joins the stores of the group to one store. Returns nullopt if they leave
/// out a case.
static std::optional<RowAccess> join(RowModel &model, const Group &group) {
  std::vector<Guards> guards;
  for (const RowAccess *store : group.stores) {
    std::optional<Guards> found = getGuards(*store);
    if (!found)
      return std::nullopt;
    guards.push_back(std::move(*found));
  }
  Guards shared = splitShared(guards);
  if (!coverRow(model, group, guards))
    return std::nullopt;
  RowAccess joined = *group.stores.front();
  joined.indices = group.indices;
  joined.loops = group.loops;
  if (group.size)
    joined.access.slice.reset();
  std::optional<Condition> all =
      both(model.isGiven(joined.access.getArgNumber()),
           model.hasSlice(joined.access));
  for (auto [value, wanted] : shared)
    all = both(all, model.getCondition(value, wanted));
  if (!all)
    return std::nullopt;
  joined.condition = std::move(*all);
  return joined;
}

SmallVector<const RowAccess *>
mlafix::pointersTo(ArrayRef<RowAccess> accesses) {
  return llvm::to_vector(llvm::make_pointer_range(accesses));
}

std::vector<RowAccess> mlafix::joinStores(RowModel &model,
                                          ArrayRef<const RowAccess *> stores) {
  std::vector<Group> groups;
  for (const RowAccess *store : stores) {
    Group group = getGroup(model, *store);
    (void)getGuards(*store, &group.forOps);
    auto known = llvm::find_if(
        groups, [&](const Group &other) { return other.isLike(group); });
    if (known == groups.end())
      groups.push_back(std::move(group));
    else
      known->stores.push_back(store);
  }
  std::vector<RowAccess> result;
  for (const Group &group : groups) {
    std::optional<RowAccess> joined =
        group.stores.size() > 1 ? join(model, group) : std::nullopt;
    if (joined)
      result.push_back(std::move(*joined));
    else
      for (const RowAccess *store : group.stores)
        result.push_back(*store);
  }
  return result;
}
