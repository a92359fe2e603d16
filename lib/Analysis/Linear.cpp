//===- Linear.cpp - linear forms and conditions of them -------------------===//
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

std::optional<Condition> mlafix::both(const Condition &a, const Condition &b) {
  if (a.disjuncts.size() * b.disjuncts.size() > kMaxDisjuncts)
    return std::nullopt;
  Condition result;
  for (const Conjunct &x : a.disjuncts)
    for (const Conjunct &y : b.disjuncts) {
      if (x.size() + y.size() > kMaxConstraints)
        return std::nullopt;
      llvm::append_range(result.disjuncts.emplace_back(x), y);
    }
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
