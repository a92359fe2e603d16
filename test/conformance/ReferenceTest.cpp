//===- ReferenceTest.cpp - the reference against closed forms -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Reference.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace conformance;

TEST(Reference, equal_weights_give_the_mean) {
  uint32_t P[] = {fromDouble(Float::F32, 1), fromDouble(Float::F32, -2)};
  uint32_t S[] = {fromDouble(Float::F32, 3), fromDouble(Float::F32, 2)};
  ExpectedRow Row = mergeReference(Float::F32, 2, {P, 5.0f}, {S, 5.0f});
  EXPECT_DOUBLE_EQ(2, Row.Payload[0].Value);
  EXPECT_DOUBLE_EQ(0, Row.Payload[1].Value);
  EXPECT_DOUBLE_EQ(5 + std::log(2.0), Row.Lse.Value);
}

TEST(Reference, a_matcher_rejects_what_is_two_ulp_off) {
  std::string Why;
  Expected E;
  E.How = Expected::Near;
  E.Value = E.Magnitude = 1.0;
  EXPECT_TRUE(matches(Float::BF16, E, 0x3f80, Why));
  EXPECT_TRUE(matches(Float::BF16, E, 0x3f81, Why));
  EXPECT_FALSE(matches(Float::BF16, E, 0x3f82, Why));
  EXPECT_FALSE(matches(Float::BF16, E, 0x7fc0, Why));
  EXPECT_TRUE(matches(Float::F32, E, fromDouble(Float::F32, 1 + 3e-6), Why));
  EXPECT_FALSE(matches(Float::F32, E, fromDouble(Float::F32, 1 + 5e-6), Why));
}

TEST(Reference, exact_means_the_sign_of_zero_too) {
  std::string Why;
  Expected Zero;
  EXPECT_TRUE(matches(Float::F16, Zero, 0x0000, Why));
  EXPECT_FALSE(matches(Float::F16, Zero, 0x8000, Why));
}

TEST(Reference, segments_out_of_order_count_for_nothing) {
  std::vector<bool> Dead = deadRows(8, {0, 0, 0, 0}, {0, 5, 3, 4, 99});
  std::vector<bool> Expected = {true, true,  true,  true,
                                true, false, false, false};
  EXPECT_EQ(Expected, Dead);
}
