//===- NumericsTest.cpp - the tests' own arithmetic -----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Numerics.h"

#include <gtest/gtest.h>

using namespace conformance;

TEST(Numerics, every_16_bit_value_survives_a_round_trip) {
  for (Float Type : {Float::BF16, Float::F16})
    for (uint32_t Bits = 0; Bits < 65536; ++Bits) {
      if (isNaN(Type, Bits))
        continue;
      ASSERT_EQ(Bits, fromDouble(Type, toDouble(Type, Bits)))
          << spelling(Type) << " bits " << Bits;
    }
}

TEST(Numerics, bf16_rounds_as_f32_does_16_bits_further_up) {
  Random R(1);
  for (int I = 0; I < 200000; ++I) {
    uint32_t Wide = uint32_t(R.next());
    if (isNaN(Float::F32, Wide))
      continue;
    // Computes the nearest bf16, ties to even, from the bits as an integer.
    uint32_t Expected = (Wide + 0x7fff + (Wide >> 16 & 1)) >> 16;
    ASSERT_EQ(Expected, fromDouble(Float::BF16, toDouble(Float::F32, Wide)))
        << std::hex << Wide;
  }
}

TEST(Numerics, narrowing_rounds_ties_to_even) {
  EXPECT_EQ(0x3f80u, fromDouble(Float::BF16, 1 + 0x1p-8));
  EXPECT_EQ(0x3f82u, fromDouble(Float::BF16, 1 + 3 * 0x1p-8));
  EXPECT_EQ(0x3f81u, fromDouble(Float::BF16, 1 + 0x1p-8 + 0x1p-30));
  EXPECT_EQ(0x7f80u, fromDouble(Float::BF16, 3.4e38));
  EXPECT_EQ(0x7c00u, fromDouble(Float::F16, 65520));
  EXPECT_EQ(0x7bffu, fromDouble(Float::F16, 65519));
  EXPECT_EQ(0x0001u, fromDouble(Float::F16, 0x1p-24));
  EXPECT_EQ(0x0000u, fromDouble(Float::F16, 0x1p-25));
  EXPECT_EQ(0x8000u, fromDouble(Float::F16, -0.0));
}

TEST(Numerics, ulp_distance_counts_across_zero) {
  EXPECT_EQ(0u, ulpDistance(Float::F16, 0x0000, 0x8000));
  EXPECT_EQ(2u, ulpDistance(Float::F16, 0x0001, 0x8001));
  EXPECT_EQ(1u, ulpDistance(Float::BF16, 0x3f80, 0x3f7f));
}
