//===- LinearTest.cpp - Linear forms and conditions -----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Linear.h"
#include "gtest/gtest.h"

#include <limits>

using namespace mlafix;

namespace {

TEST(Linear, terms_that_cancel_are_gone) {
  Linear x = Linear::of(Var(0), 3), y = Linear::of(Var(1));
  std::optional<Linear> sum = add(*add(x, y), x, -1);
  ASSERT_TRUE(sum);
  EXPECT_EQ(*sum, y);
  EXPECT_EQ(sum->getVar(), 1u);
}

TEST(Linear, what_does_not_fit_64_bits_is_none) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_FALSE(add(Linear::of(most), Linear::of(int64_t(1))));
  EXPECT_FALSE(scale(Linear::of(Var(0), most), 2));
  EXPECT_FALSE(add(Linear::of(Var(0), most), Linear::of(Var(0))));
  EXPECT_TRUE(add(Linear::of(most), Linear::of(int64_t(1)), -1));
}

TEST(Condition, too_many_cases_are_none) {
  Condition two = *either(Condition::of(Linear::of(Var(0))),
                          Condition::of(Linear::of(Var(1))));
  std::optional<Condition> product = two;
  size_t cases = 2;
  for (; product && cases <= kMaxDisjuncts; cases *= 2)
    product = both(*product, two);
  EXPECT_FALSE(product);
}

TEST(Condition, never_and_always) {
  Condition x = Condition::of(Linear::of(Var(0)));
  EXPECT_TRUE(both(Condition::never(), x)->disjuncts.empty());
  EXPECT_TRUE(either(Condition::always(), x)->isAlways());
  EXPECT_EQ(both(Condition::always(), x)->disjuncts.size(), 1u);
}

/// Returns one bool for each value of the variable from -4 to 4: true if
/// `condition` holds for it.
std::vector<bool> listValues(const Condition &condition) {
  std::vector<bool> values;
  for (int64_t x = -4; x <= 4; ++x) {
    auto holds = [&](const Constraint &one) {
      int64_t value = one.linear.constant;
      for (auto [var, coefficient] : one.linear.terms)
        value += coefficient * x;
      return one.isEquality ? value == 0 : value >= 0;
    };
    values.push_back(
        llvm::any_of(condition.disjuncts, [&](const Conjunct &conjunct) {
          return llvm::all_of(conjunct, holds);
        }));
  }
  return values;
}

TEST(Condition, constraints_of_one_form_are_merged) {
  std::vector<Condition> all;
  for (int64_t sign : {1, -1})
    for (int64_t constant = -2; constant <= 2; ++constant)
      for (bool isEquality : {false, true}) {
        Linear linear = Linear::of(Var(0), sign);
        linear.constant = constant;
        all.push_back(Condition::of(linear, isEquality));
      }
  for (const Condition &x : all)
    for (const Condition &y : all)
      for (const Condition &z : all) {
        Condition product = *both(*both(x, y), z);
        std::vector<bool> expected = listValues(x);
        for (const Condition *other : {&y, &z}) {
          std::vector<bool> values = listValues(*other);
          for (size_t i = 0; i < values.size(); ++i)
            expected[i] = expected[i] && values[i];
        }
        ASSERT_EQ(listValues(product), expected);
        for (const Conjunct &conjunct : product.disjuncts)
          ASSERT_LE(conjunct.size(), 2u);
      }
}

TEST(Condition, numbers_that_differ_from_many_are_few_cases) {
  Condition all = Condition::always();
  for (int64_t i = 0; i < 100; ++i) {
    Linear above = Linear::of(Var(0)), below = Linear::of(Var(0), -1);
    above.constant = -i - 1;
    below.constant = i - 1;
    all = *both(all, *either(Condition::of(above), Condition::of(below)));
  }
  EXPECT_EQ(all.disjuncts.size(), 2u);
}

} // namespace
