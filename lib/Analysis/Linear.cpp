//===- Linear.cpp - linear forms and conditions on them -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Linear.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlafix;

std::optional<Var> Linear::getVar() const {
  if (constant != 0 || terms.size() != 1 || terms.front().second != 1)
    return std::nullopt;
  return terms.front().first;
}

std::optional<Linear> mlafix::scale(const Linear &x, int64_t factor) {
  Linear result;
  if (factor == 0)
    return result;
  if (__builtin_mul_overflow(x.constant, factor, &result.constant))
    return std::nullopt;
  for (auto [var, coefficient] : x.terms) {
    int64_t scaled;
    if (__builtin_mul_overflow(coefficient, factor, &scaled))
      return std::nullopt;
    result.terms.push_back({var, scaled});
  }
  return result;
}

std::optional<Linear> mlafix::add(const Linear &x, const Linear &y,
                                  int64_t factor) {
  std::optional<Linear> scaled = scale(y, factor);
  Linear result;
  if (!scaled ||
      __builtin_add_overflow(x.constant, scaled->constant, &result.constant))
    return std::nullopt;
  const auto *a = x.terms.begin(), *endA = x.terms.end();
  const auto *b = scaled->terms.begin(), *endB = scaled->terms.end();
  while (a != endA || b != endB) {
    if (b == endB || (a != endA && a->first < b->first)) {
      result.terms.push_back(*a++);
    } else if (a == endA || b->first < a->first) {
      result.terms.push_back(*b++);
    } else {
      int64_t sum;
      if (__builtin_add_overflow(a->second, b->second, &sum))
        return std::nullopt;
      if (sum != 0)
        result.terms.push_back({a->first, sum});
      ++a, ++b;
    }
  }
  if (result.terms.size() > kMaxTerms)
    return std::nullopt;
  return result;
}

namespace {
/// The relation of a constraint c to an earlier one, e. Implied: e implies c.
/// Implies: c implies e. Contradicts: c and e cannot both hold.
enum class Entailment { None, Implied, Implies, Contradicts };
} // namespace

/// Compares `constraint` with `other`. Returns None unless their terms are the
/// same, or opposite to each other.
static Entailment compareConstraints(const Constraint &constraint,
                                     const Constraint &other) {
  const Linear &x = constraint.linear, &y = other.linear;
  bool isEqual = x.terms == y.terms;
  bool isOpposite =
      !isEqual && x.terms.size() == y.terms.size() &&
      llvm::all_of(llvm::zip(x.terms, y.terms), [](const auto &pair) {
        const auto &[p, q] = pair;
        return p.first == q.first &&
               uint64_t(p.second) + uint64_t(q.second) == 0;
      });
  // `room` is the value of x where y is 0.
  int64_t room;
  if ((!isEqual && !isOpposite) ||
      (isEqual ? __builtin_sub_overflow(x.constant, y.constant, &room)
               : __builtin_add_overflow(x.constant, y.constant, &room)))
    return Entailment::None;
  if (other.isEquality) // x has the value `room`
    return room == 0 || (room > 0 && !constraint.isEquality)
               ? Entailment::Implied
               : Entailment::Contradicts;
  bool isOutside = isEqual ? room > 0 : room < 0;
  if (constraint.isEquality)
    return isOutside ? Entailment::Contradicts : Entailment::Implies;
  if (isEqual)
    return room >= 0 ? Entailment::Implied : Entailment::Implies;
  return isOutside ? Entailment::Contradicts : Entailment::None;
}

/// Adds `constraint` unless an earlier constraint implies it, and drops the
/// earlier constraints that `constraint` implies. Returns false if `constraint`
/// contradicts an earlier one.
static bool addTo(Conjunct &conjunct, const Constraint &constraint) {
  for (const Constraint &other : conjunct) {
    Entailment relation = compareConstraints(constraint, other);
    if (relation == Entailment::Implied || relation == Entailment::Contradicts)
      return relation == Entailment::Implied;
  }
  llvm::erase_if(conjunct, [&](const Constraint &other) {
    return compareConstraints(constraint, other) == Entailment::Implies;
  });
  conjunct.push_back(constraint);
  return true;
}

std::optional<Condition> mlafix::both(const Condition &a, const Condition &b) {
  if (a.disjuncts.size() * b.disjuncts.size() > 4 * kMaxDisjuncts)
    return std::nullopt;
  Condition result;
  for (const Conjunct &x : a.disjuncts)
    for (const Conjunct &y : b.disjuncts) {
      Conjunct &product = result.disjuncts.emplace_back(x);
      if (!llvm::all_of(y, [&](const Constraint &constraint) {
            return addTo(product, constraint);
          }))
        result.disjuncts.pop_back();
      else if (product.size() > kMaxConstraints)
        return std::nullopt;
    }
  if (result.disjuncts.size() > kMaxDisjuncts)
    return std::nullopt;
  return result;
}

std::optional<Condition> mlafix::either(const Condition &a,
                                        const Condition &b) {
  if (a.isAlways() || b.isAlways())
    return Condition::always();
  if (a.disjuncts.size() + b.disjuncts.size() > kMaxDisjuncts)
    return std::nullopt;
  Condition result = a;
  llvm::append_range(result.disjuncts, b.disjuncts);
  return result;
}

std::optional<Condition> mlafix::isBelow(const Linear &index,
                                         const Linear &extent) {
  std::optional<Linear> room = add(extent, index, -1);
  if (!room || __builtin_sub_overflow(room->constant, 1, &room->constant))
    return std::nullopt;
  return both(Condition::of(index), Condition::of(*room));
}
