//===- RoundToF32.h - numbers of a host as f32 ------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Rounds numbers to f32 with integer arithmetic. A cast to float would depend
// on the thread's rounding mode, could flush subnormals to zero, and could
// trap. A kernel's argument must not depend on such settings of the thread.
// With torch.set_flush_denormal(True), for example, a cast turns 1e-40 into 0.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ROUNDTOF32_H
#define MLAFIX_ROUNDTOF32_H

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace mlafix {

/// Returns `significand` * 2^`exponent`, rounded to the nearest f32, ties to
/// even. Returns infinity on overflow.
inline float roundToF32(bool isNegative, uint64_t significand, int exponent) {
  auto length = [&] {
    return significand ? 64 - __builtin_clzll(significand) : 0;
  };
  // An f32 has 24 significant bits, and no bits below 2^-149.
  int dropped = std::max(length() - 24, -149 - exponent);
  if (dropped > 0) {
    uint64_t kept = dropped < 64 ? significand >> dropped : 0;
    uint64_t half = dropped <= 64 ? uint64_t(1) << (dropped - 1) : 0;
    uint64_t rest =
        dropped < 64 ? significand - (kept << dropped) : significand;
    bool isUp = half && (rest > half || (rest == half && (kept & 1)));
    significand = kept + isUp;
    exponent += dropped;
  }
  uint32_t bits = 0;
  if (significand && length() + exponent > 128)
    bits = 0x7f800000;
  else if (significand && length() + exponent > -126)
    bits = (static_cast<uint32_t>(length() + exponent + 126) << 23) |
           (static_cast<uint32_t>(significand << (24 - length())) & 0x7fffff);
  else if (significand)
    bits = static_cast<uint32_t>(significand << (exponent + 149));
  bits |= static_cast<uint32_t>(isNegative) << 31;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

/// Returns `value`, rounded to the nearest f32. Infinities and NaN stay.
inline float roundToF32(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  bool isNegative = bits >> 63;
  int biased = static_cast<int>(bits >> 52 & 0x7ff);
  uint64_t fraction = bits & ((uint64_t(1) << 52) - 1);
  if (biased == 0x7ff) {
    uint32_t special = 0x7f800000 | (fraction ? 0x400000 : 0) |
                       static_cast<uint32_t>(fraction >> 29) |
                       static_cast<uint32_t>(isNegative) << 31;
    float result;
    std::memcpy(&result, &special, sizeof(result));
    return result;
  }
  uint64_t hidden = biased ? uint64_t(1) << 52 : 0;
  return roundToF32(isNegative, fraction | hidden, std::max(biased, 1) - 1075);
}

inline float roundToF32(int64_t value) {
  auto magnitude = static_cast<uint64_t>(value);
  return roundToF32(value < 0, value < 0 ? -magnitude : magnitude, 0);
}

/// Returns true if `value` is finite but rounds to infinity.
inline bool overflowsF32(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  constexpr uint64_t least = 0x47effffff0000000, infinity = 0x7ff0000000000000;
  uint64_t magnitude = bits << 1 >> 1;
  return magnitude >= least && magnitude < infinity;
}

} // namespace mlafix

#endif // MLAFIX_ROUNDTOF32_H
