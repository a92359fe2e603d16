//===- LinearSystem.cpp - constraints on one or two rows ------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/LinearSystem.h"

#include <limits>

using namespace mlir;
using namespace mlir::presburger;
using namespace mlafix;

Form LinearSystem::addColumn() {
  named.push_back(false);
  return {{{numColumns++, 1}}};
}

std::optional<unsigned> LinearSystem::findColumn(Var var,
                                                 unsigned instance) const {
  if ((*model)[var].isLaunch)
    instance = 0;
  auto it = columns.find({var, instance});
  return it == columns.end() ? std::nullopt : std::optional(it->second);
}

unsigned LinearSystem::getColumn(Var var, unsigned instance) {
  const Variable &variable = (*model)[var];
  if (variable.isLaunch)
    instance = 0;
  auto it = columns.find({var, instance});
  if (it != columns.end())
    return it->second;
  Form form = addColumn();
  unsigned column = form.terms.front().first;
  columns[{var, instance}] = column;
  named[column] =
      variable.kind == Variable::Size || variable.kind == Variable::Scalar;
  if (isOverBudget())
    return column;
  constexpr int64_t lowest = std::numeric_limits<int64_t>::min();
  // If constraints define a variable, they imply its range, so the range is not
  // added. Sizes get no upper bound unless one is needed to exclude overflow.
  // Elimination can then drop a size together with all constraints on it. The
  // indices of an element are then bounded only by grid indices and quotients.
  bool isDefined = variable.kind == Variable::Loop
                       ? !variable.definition.isAlways()
                       : variable.kind == Variable::Grid ||
                             variable.kind == Variable::Derived;
  if (isDefined) {
    restrict(variable.definition, instance);
    return column;
  }
  if (variable.range.low > lowest)
    restrict(form - int64_t(variable.range.low));
  if (variable.range.high < kMaxSize / 2 ||
      (variable.kind == Variable::Size && model->isCareful()))
    restrict(-form + int64_t(variable.range.high));
  if (!variable.definition.isAlways())
    restrict(variable.definition, instance);
  return column;
}

Form LinearSystem::getForm(const Linear &linear, unsigned instance) {
  Form form;
  form.constant = linear.constant;
  for (auto [var, coefficient] : linear.terms)
    form.terms.push_back({getColumn(var, instance), coefficient});
  return form;
}

void LinearSystem::restrict(const Form &form, bool isEquality) {
  for (Disjunct &disjunct : disjuncts)
    disjunct.push_back({form, isEquality});
}

/// Returns the column and its value if the row is an equality of one column.
static std::optional<std::pair<unsigned, int64_t>>
getFixed(const SparseRow &row) {
  if (!row.isEquality || row.terms.size() != 1)
    return std::nullopt;
  auto [column, coefficient] = row.terms.front();
  if (coefficient != 1 && coefficient != -1)
    return std::nullopt;
  return std::pair(column, -row.constant * coefficient);
}

/// True if `a` and `b` fix the same column at different values. The column may
/// stand for the presence of an optional argument, for example.
bool LinearSystem::contradict(const Disjunct &a, const Disjunct &b) {
  for (const SparseRow &x : a)
    if (auto fixed = getFixed(x))
      for (const SparseRow &y : b)
        if (auto other = getFixed(y); other && other->first == fixed->first &&
                                      other->second != fixed->second)
          return true;
  return false;
}

void LinearSystem::restrict(const Condition &condition, unsigned instance) {
  // Add new columns before the disjuncts multiply, because a new column adds
  // its constraints to each disjunct.
  std::vector<Disjunct> added;
  for (const Conjunct &conjunct : condition.disjuncts) {
    Disjunct &rows = added.emplace_back();
    for (const Constraint &constraint : conjunct)
      rows.push_back(
          {getForm(constraint.linear, instance), constraint.isEquality});
  }
  std::vector<Disjunct> product;
  for (const Disjunct &disjunct : disjuncts)
    for (const Disjunct &rows : added)
      if (!contradict(disjunct, rows) && !contradict(rows, rows))
        llvm::append_range(product.emplace_back(disjunct), rows);
  if (product.size() > Budget::disjuncts)
    dropEmpty(product);
  isTooLarge |= product.size() > Budget::disjuncts;
  if (!isTooLarge)
    disjuncts = std::move(product);
}

/// Drops disjuncts without a point. Keeps all disjuncts if there are too many
/// of them, or if the system exceeds the budget.
void LinearSystem::dropEmpty(std::vector<Disjunct> &cases) const {
  if (cases.size() > Budget::candidates || isOverBudget())
    return;
  llvm::erase_if(cases, [&](const Disjunct &disjunct) {
    return hasPoint(disjunct, *work) == false;
  });
}

/// Returns the value of the form if all coefficients are 0; else nullopt.
static std::optional<int64_t> getConstant(const Form &form) {
  bool isConstant = llvm::all_of(
      form.terms, [](const auto &term) { return term.second == 0; });
  return isConstant ? std::optional(form.constant) : std::nullopt;
}

std::optional<std::pair<Form, int64_t>>
LinearSystem::findRemainder(const Disjunct &disjunct) {
  auto isGiven = [&](const Form &form) {
    return llvm::any_of(disjunct, [&](const SparseRow &row) {
      return row.isEquality && getConstant(row - form).has_value();
    });
  };
  for (const SparseRow &row : disjunct)
    for (const SparseRow &other : disjunct) {
      if (row.isEquality || other.isEquality)
        continue;
      std::optional<int64_t> most = getConstant(row + other);
      if (!most || *most < 1 || *most >= Budget::factor)
        continue;
      bool isRemainder = llvm::any_of(row.terms, [&](const auto &term) {
        return term.second == -(*most + 1);
      });
      if (isRemainder && !isGiven(row))
        return std::pair(Form(row), *most);
    }
  return std::nullopt;
}

bool LinearSystem::splitRemainders() {
  if (isOverBudget())
    return false;
  std::vector<Disjunct> open = disjuncts, split;
  bool isAny = false;
  while (!open.empty()) {
    Disjunct disjunct = std::move(open.back());
    open.pop_back();
    auto remainder = findRemainder(disjunct);
    if (!remainder) {
      split.push_back(std::move(disjunct));
      continue;
    }
    isAny = true;
    auto [form, most] = *remainder;
    for (int64_t value = 0; value <= most; ++value, --form.constant) {
      Disjunct one = disjunct;
      one.push_back({form, /*isEquality=*/true});
      if (hasPoint(one, *work) != false)
        open.push_back(std::move(one));
    }
    if (open.size() + split.size() > Budget::candidates)
      return false;
  }
  if (!isAny || split.size() > Budget::disjuncts)
    return false;
  disjuncts = std::move(split);
  return true;
}

bool LinearSystem::isOverBudget() const {
  return isTooLarge || numColumns > Budget::columns ||
         llvm::any_of(disjuncts, [](const Disjunct &disjunct) {
           return disjunct.size() > Budget::rows;
         });
}

/// True if no disjunct has a point. Returns nullopt if this is unknown.
template <typename Disjuncts, typename HasPoint>
static std::optional<bool> areEmpty(const Disjuncts &disjuncts,
                                    HasPoint hasPoint) {
  bool isKnown = true;
  for (const auto &disjunct : disjuncts) {
    std::optional<bool> found = hasPoint(disjunct);
    if (found == true)
      return false;
    isKnown &= found.has_value();
  }
  return isKnown ? std::optional(true) : std::nullopt;
}

std::optional<bool> LinearSystem::isEmpty() const {
  if (isOverBudget())
    return std::nullopt;
  return areEmpty(disjuncts, [&](const Disjunct &disjunct) {
    return hasPoint(disjunct, *work);
  });
}

namespace {
/// The constraints of a polyhedron, equalities first. The columns are its dims,
/// its locals and the constant, in this order.
struct Constraints {
  unsigned numDims, numEqualities;
  IntMatrix rows;

  explicit Constraints(const IntegerPolyhedron &set)
      : numDims(set.getNumDimVars()), numEqualities(set.getNumEqualities()),
        rows(0, set.getNumCols()) {
    for (unsigned i = 0; i < set.getNumEqualities(); ++i)
      rows.appendExtraRow(set.getEquality(i));
    for (unsigned i = 0; i < set.getNumInequalities(); ++i)
      rows.appendExtraRow(set.getInequality(i));
  }

  unsigned getNumLocals() const { return rows.getNumColumns() - numDims - 1; }

  /// Transforms the locals by a unimodular matrix (Hermite normal form), so
  /// that the equalities use as few locals as possible.
  void separateLocals() {
    IntMatrix given(numEqualities, getNumLocals());
    for (unsigned i = 0; i < numEqualities; ++i)
      given.setRow(i, rows.getRow(i).slice(numDims, getNumLocals()));
    IntMatrix change = given.computeHermiteNormalForm().second;
    for (unsigned i = 0; i < rows.getNumRows(); ++i) {
      auto locals = rows.getRow(i).slice(numDims, getNumLocals());
      llvm::copy(change.preMultiplyWithRow(locals), locals.begin());
    }
  }

  /// Eliminates a local with coefficient 1 or -1 in an equality. Returns false
  /// if there is no such local.
  bool dropGiven() {
    for (unsigned i = 0; i < numEqualities; ++i)
      for (unsigned j = numDims; j < numDims + getNumLocals(); ++j) {
        DynamicAPInt unit = rows(i, j);
        if (abs(unit) != 1)
          continue;
        for (unsigned k = 0; k < rows.getNumRows(); ++k)
          if (k != i)
            rows.addToRow(i, k, -unit * rows(k, j));
        rows.removeRow(i);
        rows.removeColumn(j);
        --numEqualities;
        return true;
      }
    return false;
  }

  IntegerPolyhedron getPolyhedron() const {
    IntegerPolyhedron set(
        PresburgerSpace::getSetSpace(numDims, 0, getNumLocals()));
    for (unsigned i = 0; i < rows.getNumRows(); ++i)
      if (i < numEqualities)
        set.addEquality(rows.getRow(i));
      else
        set.addInequality(rows.getRow(i));
    return set;
  }
};
} // namespace

/// Returns the same set with fewer locals. For `(7 i + t) mod n` in a loop over
/// i, one local replaces i, the quotient and the remainder. Symbolic lexmin,
/// which eliminates the other locals later, would find such relations only by
/// cuts, whose number grows with n.
static IntegerPolyhedron solveLocals(const IntegerPolyhedron &set) {
  Constraints constraints(set);
  constraints.separateLocals();
  while (constraints.dropGiven()) {
  }
  return constraints.getPolyhedron();
}

PresburgerSet LinearSystem::getSet() const {
  PresburgerSet set =
      PresburgerSet::getEmpty(PresburgerSpace::getSetSpace(numColumns));
  for (const Disjunct &disjunct : disjuncts)
    set.unionInPlace(getPolyhedron(disjunct, numColumns, numColumns));
  return set;
}

/// True if symbolic lexmin can eliminate the locals that are not divisions at
/// low cost.
static bool isSoonSolved(const IntegerPolyhedron &set) {
  unsigned numDims = set.getNumDimVars(), numLocals = set.getNumLocalVars();
  if (numLocals <= 1 || set.getLocalReprs().hasAllReprs())
    return true;
  auto isSmall = [&](ArrayRef<DynamicAPInt> row) {
    return llvm::all_of(row.slice(numDims, numLocals),
                        [](const DynamicAPInt &factor) {
                          return abs(factor) <= DynamicAPInt(Budget::factor);
                        });
  };
  auto areSmall = [&](unsigned count, auto getRow) {
    return llvm::all_of(llvm::seq(count),
                        [&](unsigned i) { return isSmall(getRow(i)); });
  };
  return numLocals <= Budget::locals &&
         areSmall(set.getNumInequalities(),
                  [&](unsigned i) { return set.getInequality(i); }) &&
         areSmall(set.getNumEqualities(),
                  [&](unsigned i) { return set.getEquality(i); });
}

std::optional<PresburgerSet> LinearSystem::project(unsigned numDims) const {
  PresburgerSet set =
      PresburgerSet::getEmpty(PresburgerSpace::getSetSpace(numDims));
  for (const Disjunct &disjunct : disjuncts) {
    IntegerPolyhedron solved =
        solveLocals(getPolyhedron(disjunct, numDims, numColumns));
    if (!isSoonSolved(solved) || !work->spend(numColumns * disjunct.size()))
      return std::nullopt;
    set.unionInPlace(solved);
  }
  return PresburgerSet(set.computeReprWithOnlyDivLocals());
}

/// Converts numbers to 64 bits. Returns nullopt if one does not fit.
static std::optional<LinearSystem::Point>
toPoint(ArrayRef<DynamicAPInt> numbers) {
  using Limits = std::numeric_limits<int64_t>;
  const DynamicAPInt least(Limits::min()), most(Limits::max());
  LinearSystem::Point point;
  for (const DynamicAPInt &number : numbers) {
    if (number < least || number > most)
      return std::nullopt;
    point.push_back(int64_t(number));
  }
  return point;
}

std::optional<std::vector<SparseRow>>
mlafix::getSparseRows(const IntegerRelation &set) {
  std::vector<SparseRow> rows;
  auto add = [&](ArrayRef<DynamicAPInt> numbers, bool isEquality) {
    std::optional<LinearSystem::Point> row = toPoint(numbers);
    if (!row)
      return false;
    SparseRow &sparse = rows.emplace_back();
    sparse.constant = row->pop_back_val();
    sparse.isEquality = isEquality;
    for (auto [column, coefficient] : llvm::enumerate(*row))
      if (coefficient)
        sparse.terms.push_back({column, coefficient});
    return true;
  };
  for (unsigned i = 0; i < set.getNumEqualities(); ++i)
    if (!add(set.getEquality(i), /*isEquality=*/true))
      return std::nullopt;
  for (unsigned i = 0; i < set.getNumInequalities(); ++i)
    if (!add(set.getInequality(i), /*isEquality=*/false))
      return std::nullopt;
  return rows;
}

std::optional<bool> mlafix::isEmpty(const PresburgerSet &set, Work &work) {
  return areEmpty(set.getAllDisjuncts(), [&](const IntegerRelation &disjunct) {
    auto rows = getSparseRows(disjunct);
    return rows ? hasPoint(*rows, work) : std::optional<bool>();
  });
}

/// Returns some point of the set: the values of its dims, and of the other
/// columns where they are known. Returns nullopt if there is no point or the
/// budget runs out.
static std::optional<LinearSystem::Point> samplePoint(IntegerRelation set,
                                                      Work &work) {
  // Check for emptiness first: the search for a point is slow if there is none.
  auto rows = getSparseRows(set);
  if (!rows || hasPoint(*rows, work) != true)
    return std::nullopt;
  if (set.getNumVars() > Budget::sampled)
    return findSmallPoint(std::move(*rows), set.getNumDimVars(), work);
  if (!work.spend(100 * set.getNumVars()))
    return std::nullopt;
  std::optional<SmallVector<DynamicAPInt, 8>> sample = set.findIntegerSample();
  return sample ? toPoint(*sample) : std::nullopt;
}

std::optional<LinearSystem::Point>
LinearSystem::findPoint(const PresburgerSet &set) const {
  constexpr int64_t kBounds[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,   10,
                                 11, 12, 13, 14, 15, 16, 17, 64, 1024};
  auto search = [&](int64_t least, int64_t bound) -> std::optional<Point> {
    for (const IntegerRelation &disjunct : set.getAllDisjuncts()) {
      IntegerRelation small = disjunct;
      for (unsigned i = 0; bound && i < disjunct.getNumDimVars(); ++i)
        if (i < named.size() && named[i]) {
          small.addBound(BoundType::UB, i, bound);
          small.addBound(BoundType::LB, i, least);
        }
      if (std::optional<Point> point = samplePoint(std::move(small), *work))
        return point;
    }
    return std::nullopt;
  };
  for (int64_t bound : kBounds)
    for (int64_t least : {int64_t(0), -bound})
      if (std::optional<Point> point = search(least, bound))
        return point;
  return search(0, 0);
}

std::optional<LinearSystem::Point> LinearSystem::findPoint() const {
  if (isOverBudget())
    return std::nullopt;
  return findPoint(getSet());
}
