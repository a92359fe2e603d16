//===- Linear.h - linear forms and conditions on them -----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_LINEAR_H
#define MLAFIX_ANALYSIS_LINEAR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>
#include <utility>

namespace mlafix {

/// The position of a variable in a RowModel.
using Var = unsigned;

/// A linear form: constant + sum of coefficient * variable.
struct Linear {
  /// The (variable, coefficient) pairs in ascending order of the variable. No
  /// coefficient is 0.
  llvm::SmallVector<std::pair<Var, int64_t>, 4> terms;
  int64_t constant = 0;

  static Linear of(int64_t constant) {
    Linear linear;
    linear.constant = constant;
    return linear;
  }
  static Linear of(Var var, int64_t coefficient = 1, int64_t constant = 0) {
    Linear linear = of(constant);
    linear.terms.push_back({var, coefficient});
    return linear;
  }
  bool isConstant() const { return terms.empty(); }
  /// Returns the variable if the form is exactly one variable; else nullopt.
  std::optional<Var> getVar() const;
  bool operator==(const Linear &other) const {
    return terms == other.terms && constant == other.constant;
  }
};

/// The most terms of a form, and the most constraints of a conjunct. Forms and
/// conjuncts beyond these limits are treated as unknown.
inline constexpr size_t kMaxTerms = 16, kMaxConstraints = 48;

/// Returns x + factor * y. Returns nullopt if the form gets too long or a
/// coefficient overflows 64 bits.
std::optional<Linear> add(const Linear &x, const Linear &y, int64_t factor = 1);
/// The sum of forms that may be unknown is unknown if one of them is.
inline std::optional<Linear> add(const std::optional<Linear> &x,
                                 const std::optional<Linear> &y,
                                 int64_t factor = 1) {
  return x && y ? add(*x, *y, factor) : std::nullopt;
}
/// Returns factor * x. Returns nullopt if a coefficient overflows 64 bits.
std::optional<Linear> scale(const Linear &x, int64_t factor);

/// The constraint `linear` >= 0, or `linear` == 0.
struct Constraint {
  Linear linear;
  bool isEquality = false;
};

using Conjunct = llvm::SmallVector<Constraint, 4>;

/// A condition in disjunctive normal form: a disjunction of conjunctions.
struct Condition {
  llvm::SmallVector<Conjunct, 2> disjuncts;

  static Condition always() { return {{Conjunct()}}; }
  static Condition never() { return {}; }
  static Condition of(Linear linear, bool isEquality = false) {
    return {{Conjunct{{std::move(linear), isEquality}}}};
  }
  /// Returns the condition that `var` has the value `value`.
  static Condition is(Var var, int64_t value) {
    return of(Linear::of(var, 1, -value), /*isEquality=*/true);
  }
  bool isAlways() const {
    return disjuncts.size() == 1 && disjuncts.front().empty();
  }
};

/// The most disjuncts of a condition. Conditions beyond this limit are treated
/// as unknown.
inline constexpr size_t kMaxDisjuncts = 32;

/// Return the conjunction and the disjunction of `a` and `b`. Return nullopt if
/// the result has too many disjuncts or constraints, or if `a` or `b` is
/// unknown.
std::optional<Condition> both(const Condition &a, const Condition &b);
std::optional<Condition> either(const Condition &a, const Condition &b);
inline std::optional<Condition> both(const std::optional<Condition> &a,
                                     const std::optional<Condition> &b) {
  return a && b ? both(*a, *b) : std::nullopt;
}
inline std::optional<Condition> either(const std::optional<Condition> &a,
                                       const std::optional<Condition> &b) {
  return a && b ? either(*a, *b) : std::nullopt;
}

/// Returns the condition 0 <= index < extent, or nullopt on overflow.
std::optional<Condition> isBelow(const Linear &index, const Linear &extent);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_LINEAR_H
