//===- System.cpp - constraints of one or two rows ------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/System.h"

#include "mlir/Analysis/Presburger/Simplex.h"

#include <limits>

using namespace mlir;
using namespace mlir::presburger;
using namespace mlafix;

Form &Form::add(const Form &other, int64_t factor) {
  constant += factor * other.constant;
  for (auto [column, coefficient] : other.terms) {
    auto *it = llvm::find_if(
        terms, [c = column](const auto &term) { return term.first == c; });
    if (it == terms.end())
      terms.push_back({column, factor * coefficient});
    else
      it->second += factor * coefficient;
  }
  return *this;
}

Form System::addColumn() {
  Form form;
  form.terms.push_back({numColumns++, 1});
  named.push_back(false);
  return form;
}

std::optional<unsigned> System::findColumn(Var var, unsigned instance) const {
  if ((*model)[var].isLaunch)
    instance = 0;
  auto it = columns.find({var, instance});
  return it == columns.end() ? std::nullopt : std::optional(it->second);
}

unsigned System::getColumn(Var var, unsigned instance) {
  const Variable &variable = (*model)[var];
  if (variable.isLaunch)
    instance = 0;
  auto it = columns.find({var, instance});
  if (it != columns.end())
    return it->second;
  unsigned column = addColumn().terms.front().first;
  columns[{var, instance}] = column;
  named[column] =
      variable.kind == Variable::Size || variable.kind == Variable::Scalar;
  if (isOverBudget())
    return column;
  Form form;
  form.terms.push_back({column, 1});
  constexpr int64_t lowest = std::numeric_limits<int64_t>::min();
  // Definitions imply the ranges of what they define. Sizes have no end here,
  // so that an element has one where a row or a quotient has one.
  if (variable.kind == Variable::Grid || variable.kind == Variable::Derived) {
    restrict(variable.definition, instance);
    return column;
  }
  if (variable.range.low > lowest) {
    Form above = form;
    above.constant = -int64_t(variable.range.low);
    restrict(above);
  }
  if (variable.range.high < kMaxSize / 2) {
    Form below;
    below.constant = int64_t(variable.range.high);
    restrict(below.add(form, -1));
  }
  if (!variable.definition.isAlways())
    restrict(variable.definition, instance);
  return column;
}

Form System::getForm(const Linear &linear, unsigned instance) {
  Form form;
  form.constant = linear.constant;
  for (auto [var, coefficient] : linear.terms)
    form.terms.push_back({getColumn(var, instance), coefficient});
  return form;
}

void System::restrict(const Form &form, bool isEquality) {
  for (Disjunct &disjunct : disjuncts)
    disjunct.push_back({form, isEquality});
}

/// The column and the value, where a row is an equality that gives it one.
std::optional<std::pair<unsigned, int64_t>> System::Row::getFixed() const {
  if (!isEquality || form.terms.size() != 1)
    return std::nullopt;
  auto [column, coefficient] = form.terms.front();
  if (coefficient != 1 && coefficient != -1)
    return std::nullopt;
  return std::pair(column, -form.constant * coefficient);
}

/// Whether the rows give one column two values: cases of an argument that is
/// there and of one that is omitted, for example, do not meet.
bool System::contradict(const Disjunct &a, const Disjunct &b) {
  for (const Row &x : a)
    if (auto fixed = x.getFixed())
      for (const Row &y : b)
        if (auto other = y.getFixed(); other && other->first == fixed->first &&
                                       other->second != fixed->second)
          return true;
  return false;
}

void System::restrict(const Condition &condition, unsigned instance) {
  // New columns extend all disjuncts, so they come before these multiply.
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

/// Drops what has no rational point, unless that is too much to look at.
void System::dropEmpty(std::vector<Disjunct> &cases) const {
  if (cases.size() > Budget::candidates || isOverBudget())
    return;
  llvm::erase_if(cases, [&](const Disjunct &disjunct) {
    return Simplex(getPolyhedron(disjunct, numColumns)).isEmpty();
  });
}

bool System::isOverBudget() const {
  return isTooLarge || numColumns > Budget::columns ||
         llvm::any_of(disjuncts, [](const Disjunct &disjunct) {
           return disjunct.size() > Budget::rows;
         });
}

IntegerPolyhedron System::getPolyhedron(const Disjunct &disjunct,
                                        unsigned numDims) const {
  IntegerPolyhedron polyhedron(
      PresburgerSpace::getSetSpace(numDims, 0, numColumns - numDims));
  SmallVector<int64_t> row;
  for (const Row &constraint : disjunct) {
    row.assign(numColumns + 1, 0);
    row.back() = constraint.form.constant;
    for (auto [column, coefficient] : constraint.form.terms)
      row[column] += coefficient;
    if (constraint.isEquality)
      polyhedron.addEquality(row);
    else
      polyhedron.addInequality(row);
  }
  return polyhedron;
}

std::optional<bool> System::isEmpty() const {
  if (isOverBudget())
    return std::nullopt;
  for (const Disjunct &disjunct : disjuncts) {
    IntegerPolyhedron polyhedron = getPolyhedron(disjunct, numColumns);
    // Most questions have no rational solution either, which is cheap to see.
    if (!Simplex(polyhedron).isEmpty() && !polyhedron.isIntegerEmpty())
      return false;
  }
  return true;
}

PresburgerSet System::getSet(unsigned numDims) const {
  PresburgerSet set =
      PresburgerSet::getEmpty(PresburgerSpace::getSetSpace(numDims));
  for (const Disjunct &disjunct : disjuncts)
    set.unionInPlace(getPolyhedron(disjunct, numDims));
  return set;
}

std::optional<System::Point> System::findPoint(const PresburgerSet &set) const {
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
      if (std::optional<SmallVector<DynamicAPInt, 8>> sample =
              small.findIntegerSample()) {
        constexpr int64_t most = std::numeric_limits<int64_t>::max();
        Point point;
        for (const DynamicAPInt &value : *sample) {
          if (abs(value) > DynamicAPInt(most))
            return std::nullopt;
          point.push_back(int64_t(value));
        }
        return point;
      }
    }
    return std::nullopt;
  };
  for (int64_t bound : kBounds)
    for (int64_t least : {int64_t(0), -bound})
      if (std::optional<Point> point = search(least, bound))
        return point;
  return search(0, 0);
}

std::optional<System::Point> System::findPoint() const {
  if (isOverBudget())
    return std::nullopt;
  return findPoint(getSet(numColumns));
}
