//===- Numerics.h - storage types and rounding for the tests ----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// bf16, f16 and f32 as the tests see them: raw bits, exact widening to double,
// correctly rounded narrowing from double, distance in units in the last place.
// Independent of the code under test on purpose.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TEST_CONFORMANCE_NUMERICS_H
#define MLAFIX_TEST_CONFORMANCE_NUMERICS_H

#include <cstddef>
#include <cstdint>

namespace conformance {

/// The element types of a stored state.
enum class Float { BF16, F16, F32 };

/// Bytes of one element.
size_t byteWidth(Float Type);

/// The spelling in units: "bf16", "f16", "f32".
const char *spelling(Float Type);

/// Returns the exact value of an element with the given bits.
double toDouble(Float Type, uint32_t Bits);

/// Rounds \p Value to the nearest element, ties to even. Overflow gives
/// infinity.
uint32_t fromDouble(Float Type, double Value);

/// True if the bits are a NaN.
bool isNaN(Float Type, uint32_t Bits);

/// Returns the distance of two numbers, neither NaN, in representable values: 0
/// for equal bits and for +0 against -0.
uint64_t ulpDistance(Float Type, uint32_t A, uint32_t B);

/// A reproducible stream of numbers: a counter hashed by SplitMix64, so that
/// each number is computed independently of the others.
class Random {
public:
  explicit Random(uint64_t Seed) : State(Seed) {}
  uint64_t next();
  /// Uniform in [Low, High).
  double uniform(double Low, double High);
  /// Uniform in [0, Count).
  uint64_t below(uint64_t Count) { return next() % Count; }

private:
  uint64_t State;
};

/// SplitMix64's finaliser, for choices that must not depend on their order.
uint64_t hash(uint64_t Value);

} // namespace conformance

#endif // MLAFIX_TEST_CONFORMANCE_NUMERICS_H
