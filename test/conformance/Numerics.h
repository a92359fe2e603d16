//===- Numerics.h - storage types and rounding for the tests ----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Implements bf16, f16 and f32 for the tests: raw bits, exact conversion to
// double, correctly rounded conversion from double, and distances in units in
// the last place. It shares no code with the code under test.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TEST_CONFORMANCE_NUMERICS_H
#define MLAFIX_TEST_CONFORMANCE_NUMERICS_H

#include <cstddef>
#include <cstdint>

namespace conformance {

/// The element types of a stored state.
enum class Float { BF16, F16, F32 };

/// Returns the number of bytes of an element.
size_t byteWidth(Float Type);

/// Returns the type's name in units: "bf16", "f16" or "f32".
const char *spelling(Float Type);

/// Returns the exact value of an element with the given bits.
double toDouble(Float Type, uint32_t Bits);

/// Rounds \p Value to the nearest element, ties to even. Overflow gives
/// infinity.
uint32_t fromDouble(Float Type, double Value);

/// Returns true if the bits are a NaN.
bool isNaN(Float Type, uint32_t Bits);

/// Returns how many representable numbers A is away from B. Neither may be NaN.
/// The distance of +0 and -0 is 0.
uint64_t ulpDistance(Float Type, uint32_t A, uint32_t B);

/// A reproducible stream of numbers: a counter hashed by SplitMix64, so that
/// each number is computed independently of the others.
class Random {
public:
  explicit Random(uint64_t Seed) : State(Seed) {}
  uint64_t next();
  /// Returns a number that is uniformly distributed in [Low, High).
  double uniform(double Low, double High);
  /// Returns an integer that is uniformly distributed in [0, Count).
  uint64_t below(uint64_t Count) { return next() % Count; }

private:
  uint64_t State;
};

/// Applies SplitMix64's finaliser to a number. Tests use it for random choices
/// that do not depend on the order of the calls.
uint64_t hash(uint64_t Value);

} // namespace conformance

#endif // MLAFIX_TEST_CONFORMANCE_NUMERICS_H
