//===- Fp4Test.cpp - rounding to f4E2M1FN on GPUs -------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The arithmetic of narrowFp4OnGPU in lib/Conversion/ConvertFp8.cpp: for all
// magnitudes, and of eight elements in a word.
//
//===----------------------------------------------------------------------===//

#include "gtest/gtest.h"

#include "llvm/ADT/bit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>

namespace {

constexpr float kUnits = 12582912.0f;
constexpr uint32_t kUnitsBits = 0x4b400000;

/// The sum that buildCodes makes of a magnitude up to 6. Twice it is exact, and
/// so is half of it but below 2^-126, so that each line is rounded once, as by
/// fma. The least of the lines is that of their bits.
uint32_t sumOf(float magnitude) {
  float halves = magnitude * 2.0f + kUnits;
  float ones = magnitude + (kUnits + 2);
  float twos = magnitude * 0.5f + (kUnits + 4);
  auto least = llvm::bit_cast<int32_t>(std::min({halves, ones, twos}));
  int32_t leastBits =
      std::min({llvm::bit_cast<int32_t>(halves), llvm::bit_cast<int32_t>(ones),
                llvm::bit_cast<int32_t>(twos)});
  return least == leastBits ? uint32_t(least) : 0;
}

/// By the ties between 0, 0.5, 1, 1.5, 2, 3, 4 and 6, which go to even codes.
uint32_t codeOf(float magnitude) {
  return uint32_t(magnitude > 0.25f) + uint32_t(magnitude >= 0.75f) +
         uint32_t(magnitude > 1.25f) + uint32_t(magnitude >= 1.75f) +
         uint32_t(magnitude > 2.5f) + uint32_t(magnitude >= 3.5f) +
         uint32_t(magnitude > 5.0f);
}

/// PTX's `prmt` in its default mode.
uint32_t permute(uint32_t low, uint32_t high, uint32_t selector) {
  uint64_t both = uint64_t(high) << 32 | low;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    uint32_t field = selector >> (4 * i) & 0xf;
    auto byte = static_cast<uint8_t>(both >> (8 * (field & 7)));
    if (field & 8)
      byte = byte & 0x80 ? 0xff : 0;
    result |= uint32_t(byte) << (8 * i);
  }
  return result;
}

uint32_t choose(uint32_t mask, uint32_t x, uint32_t y) {
  return (x & mask) | (y & ~mask);
}

} // namespace

TEST(Fp4Test, EveryMagnitudeBecomesTheNearestCode) {
  // Below 2^-25 each sum is that of zero: twice a magnitude is less than half a
  // unit of kUnits.
  constexpr uint32_t kLeast = 0x33000000, kSix = 0x40c00000, kBlock = 1 << 16;
  EXPECT_EQ(sumOf(0.0f), kUnitsBits);
  uint64_t wrong = 0;
  for (uint32_t first = kLeast; first <= kSix; first += kBlock) {
    uint32_t differs = 0;
    for (uint32_t i = 0; i < kBlock; ++i) {
      // Beyond 6 there is 6 again.
      float magnitude = std::min(llvm::bit_cast<float>(first + i), 6.0f);
      differs |= sumOf(magnitude) ^ (kUnitsBits + codeOf(magnitude));
    }
    wrong += differs != 0;
  }
  EXPECT_EQ(wrong, 0u);
}

TEST(Fp4Test, WordsHoldTheCodesOfEightElementsAndTheirSigns) {
  std::mt19937 random(1);
  for (int i = 0; i < 200'000; ++i) {
    std::array<uint32_t, 8> bits{};
    uint32_t want = 0, sum = 0, units = 0;
    for (unsigned j = 0; j < 8; ++j) {
      bits[j] = random();
      float x = std::fabs(llvm::bit_cast<float>(bits[j]));
      float magnitude = x < 6.0f ? x : 6.0f; // of NaN, too
      want |= (codeOf(magnitude) | bits[j] >> 31 << 3) << (4 * j);
      sum += sumOf(magnitude) << (4 * j);
      units += kUnitsBits << (4 * j);
    }
    uint32_t even = permute(permute(bits[0], bits[2], 0xfb),
                            permute(bits[4], bits[6], 0xfb), 0x5410);
    uint32_t odd = permute(permute(bits[1], bits[3], 0xfb),
                           permute(bits[5], bits[7], 0xfb), 0x5410);
    uint32_t signs = choose(0x0f0f0f0f, even, odd);
    ASSERT_EQ(choose(0x88888888, signs, sum - units), want) << i;
  }
}
