//===- ReciprocalTest.cpp - divisions by a shared reciprocal --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The arithmetic of lib/Transforms/Late/LowerDivisions.cpp: for all
// significands, and at the ends of its range.
//
//===----------------------------------------------------------------------===//

#include "gtest/gtest.h"

#include "llvm/ADT/bit.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>

namespace {

float divide(float x, float s) {
  float r = 1.0f / s;
  float near = x * r;
  float rest = std::fma(near, s, -x);
  return std::fma(rest, -r, near);
}

/// By a constant of few bits, above 1.
float divideByConstant(float x, float c) {
  double inverse = 1.0 / c;
  auto high = static_cast<float>(inverse);
  if (high > inverse)
    high = std::nextafterf(high, 0.0f);
  auto low = static_cast<float>(std::fma(-double(high), double(c), 1.0) / c);
  return std::fma(x, high, x * low);
}

float fromBits(uint32_t bits) { return llvm::bit_cast<float>(bits); }

/// 1 / s modulo 2^32, of an odd s.
uint32_t invert(uint32_t s) {
  uint32_t inverse = s;
  for (int i = 0; i < 4; ++i)
    inverse *= 2 - s * inverse;
  return inverse;
}

/// Calls `check` with all X, S of 24 bits whose quotient is |c| / 2S units in
/// the last place from a number halfway between two floats. With X >= S the
/// quotient's significand is X / S and `shift` is 24, else 2X / S and 25: then
/// X * 2^shift - M * S = c, for the odd M of 25 bits that is halfway.
template <typename Check>
void forEachNear(uint32_t s, int c, unsigned shift, Check check) {
  unsigned even = llvm::countr_zero(s);
  if (even > 1 || (even == 1 && c % 2 != 0))
    return; // c would be a multiple of 2^even
  unsigned bits = shift - even;
  uint32_t mask = (uint32_t(1) << bits) - 1;
  auto target = static_cast<uint32_t>(-(c >> even));
  uint32_t first = (target * invert(s >> even)) & mask;
  uint32_t step = mask + 1;
  for (uint64_t m = first; m < (1u << 25); m += step) {
    if (m < (1u << 24) || m % 2 == 0)
      continue;
    auto product = static_cast<int64_t>(m * s) + c;
    int64_t x = product >> shift;
    if ((x << shift) == product && x >= (1 << 23) && x < (1 << 24) &&
        (x >= s) == (shift == 24))
      check(static_cast<uint32_t>(x));
  }
}

} // namespace

// The number that is rounded in the end differs from the quotient by less than
// 1.5 * 2^-24 units, and a quotient is |c| * 2^-25 units or more from halfway:
// beyond |c| of 3 the difference cannot matter.
TEST(ReciprocalTest,
     QuotientsNearHalfwayAreCorrectlyRoundedForAllSignificands) {
  uint64_t checked = 0, wrong = 0;
  for (uint32_t s = 1u << 23; s < (1u << 24); ++s)
    for (int c : {-3, -2, -1, 1, 2, 3})
      for (unsigned shift : {24u, 25u})
        forEachNear(s, c, shift, [&](uint32_t x) {
          auto dividend = static_cast<float>(x),
               divisor = static_cast<float>(s);
          ++checked;
          wrong += divide(dividend, divisor) != dividend / divisor;
        });
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(checked, 10'000'000u);
}

TEST(ReciprocalTest, QuotientsThatFp8TellsFromZeroAreExactWithinTheRange) {
  std::mt19937 random(1);
  auto exponent = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  auto significand = [&] { return 1.0f + (random() & 0x7fffff) * 0x1p-23f; };
  for (int i = 0; i < 5'000'000; ++i) {
    int ofDivisor = exponent(-64, 63);
    float s = std::ldexp(significand(), ofDivisor);
    int ofDividend = exponent(std::max(-149, ofDivisor - 27), 61);
    float x = std::ldexp(significand(), ofDividend);
    if (std::fabs(x / s) < 0x1p-26f)
      continue;
    ASSERT_EQ(divide(x, s), x / s) << x << " / " << s;
    ASSERT_EQ(divide(-x, s), -x / s) << -x << " / " << s;
  }
}

TEST(ReciprocalTest, QuotientsOfNoSmallDividendAreExactWithinTheRange) {
  std::mt19937 random(4);
  auto scaled = [&](int low, int high) {
    int exponent = std::uniform_int_distribution<int>(low, high)(random);
    return std::ldexp(1.0f + (random() & 0x7fffff) * 0x1p-23f, exponent);
  };
  for (int i = 0; i < 5'000'000; ++i) {
    // Either end often enough.
    float s = i % 3 == 0   ? scaled(19, 19)
              : i % 3 == 1 ? scaled(-64, -63)
                           : scaled(-64, 19);
    float x = i % 5 < 2 ? scaled(-100, -99) : scaled(-100, 61);
    ASSERT_EQ(divide(x, s), x / s) << x << " / " << s;
    ASSERT_EQ(divide(-x, s), -x / s) << -x << " / " << s;
  }
}

TEST(ReciprocalTest, SmallerQuotientsKeepTheirSignAndStayBelowWhatFp8Has) {
  std::mt19937 random(2);
  for (int i = 0; i < 5'000'000; ++i) {
    // Any dividend below 2^62, subnormal ones among them; divisors in range.
    float x = fromBits(random() % 0x5e800001u);
    float s = fromBits(0x1f800000u + random() % (0x5f800001u - 0x1f800000u));
    if (i % 4 == 0)
      x = fromBits(random() % 0x00800000u);
    if (i % 64 == 0)
      s = std::ldexp(1.0f, static_cast<int>(random() % 129) - 64);
    if (x / s >= 0x1p-26f)
      continue;
    ASSERT_LT(std::fabs(divide(x, s)), 0x1p-25f) << x << " / " << s;
    ASSERT_FALSE(std::signbit(divide(x, s))) << x << " / " << s;
    ASSERT_TRUE(std::signbit(divide(-x, s))) << -x << " / " << s;
  }
}

TEST(ReciprocalTest, ZerosKeepTheirSign) {
  for (float s : {0x1p-64f, 0.3f, 1.0f, 448.0f, 0x1p20f, 0x1p64f}) {
    EXPECT_FALSE(std::signbit(divide(0.0f, s)));
    EXPECT_TRUE(std::signbit(divide(-0.0f, s)));
  }
}

// Those of e4m3, e2m1, e5m2 and i8, some with large odd parts, and the largest.
TEST(ReciprocalTest, QuotientsByConstantsAreExactForAllSignificands) {
  for (float c : {448.0f, 6.0f, 57344.0f, 127.0f, 3.0f, 1048575.0f, 699051.0f,
                  524289.0f, 1048575.0f * 0x1p20f}) {
    uint32_t wrong = 0;
    for (uint32_t significand = 0; significand < (1u << 23); ++significand) {
      float x = fromBits(0x3f800000u | significand);
      wrong += divideByConstant(x, c) != x / c;
    }
    EXPECT_EQ(wrong, 0u) << c;
  }
}

// The least dividends, by the bound of LowerDivisions.cpp.
TEST(ReciprocalTest, QuotientsByConstantsAreExactAtTheEndsOfTheirRange) {
  for (auto [c, least] : {std::pair(448.0f, 0x1p-114f),
                          {3.0f, 0x1p-120f},
                          {1048575.0f * 0x1p20f, 0x1p-60f}}) {
    std::mt19937 random(3);
    for (int i = 0; i < 1'000'000; ++i) {
      float significand = 1.0f + (random() & 0x7fffff) * 0x1p-23f;
      for (float x : {significand * least, significand * 0x1p127f})
        ASSERT_EQ(divideByConstant(x, c), x / c) << x << " / " << c;
    }
    float infinity = std::numeric_limits<float>::infinity();
    EXPECT_EQ(divideByConstant(infinity, c), infinity);
    EXPECT_TRUE(std::isnan(divideByConstant(std::nanf(""), c)));
  }
}
