//===- LinearTest.cpp - linear forms and conditions -----------------------===//
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

} // namespace
