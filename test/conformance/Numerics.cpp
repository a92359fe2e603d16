//===- Numerics.cpp - storage types and rounding for the tests ------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Numerics.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace conformance;

namespace {

struct Format {
  int ExponentBits, FractionBits;
  int bias() const { return (1 << (ExponentBits - 1)) - 1; }
  uint32_t exponentMask() const {
    return ((1u << ExponentBits) - 1) << FractionBits;
  }
  uint32_t fractionMask() const { return (1u << FractionBits) - 1; }
  uint32_t signMask() const { return 1u << (ExponentBits + FractionBits); }
};

Format format(Float Type) {
  switch (Type) {
  case Float::BF16:
    return {8, 7};
  case Float::F16:
    return {5, 10};
  case Float::F32:
    return {8, 23};
  }
  return {8, 23};
}

} // namespace

size_t conformance::byteWidth(Float Type) { return Type == Float::F32 ? 4 : 2; }

const char *conformance::spelling(Float Type) {
  switch (Type) {
  case Float::BF16:
    return "bf16";
  case Float::F16:
    return "f16";
  case Float::F32:
    return "f32";
  }
  return "?";
}

double conformance::toDouble(Float Type, uint32_t Bits) {
  if (Type == Float::BF16 ||
      Type == Float::F32) { // A bf16 is the upper half of an f32.
    uint32_t Wide = Type == Float::BF16 ? Bits << 16 : Bits;
    float Value;
    std::memcpy(&Value, &Wide, 4);
    return Value;
  }
  Format F = format(Type);
  int Exponent = (Bits & F.exponentMask()) >> F.FractionBits;
  uint32_t Fraction = Bits & F.fractionMask();
  double Value;
  if (Exponent == (1 << F.ExponentBits) - 1)
    Value = Fraction ? NAN : INFINITY;
  else if (Exponent == 0)
    Value = std::ldexp(double(Fraction), 1 - F.bias() - F.FractionBits);
  else
    Value = std::ldexp(double(Fraction + (1u << F.FractionBits)),
                       Exponent - F.bias() - F.FractionBits);
  return Bits & F.signMask() ? -Value : Value;
}

uint32_t conformance::fromDouble(Float Type, double Value) {
  if (Type == Float::F32 && !std::isnan(Value)) {
    float Narrow = float(Value);
    uint32_t Bits;
    std::memcpy(&Bits, &Narrow, 4);
    return Bits;
  }
  Format F = format(Type);
  if (std::isnan(Value))
    return F.exponentMask() | (1u << (F.FractionBits - 1));
  uint32_t Sign = std::signbit(Value) ? F.signMask() : 0;
  double Magnitude = std::fabs(Value);
  if (Magnitude == 0)
    return Sign;
  if (std::isinf(Magnitude))
    return Sign | F.exponentMask();
  int Exponent;
  std::frexp(Magnitude, &Exponent);
  // The exponent of one ulp at Magnitude. All denormals have the same ulp.
  int Unit = std::max(Exponent - 1, 1 - F.bias()) - F.FractionBits;
  // nearbyint rounds ties to even, and the division by the ulp is exact.
  double Scaled = std::nearbyint(std::ldexp(Magnitude, -Unit));
  // The exponent in Base is one too low, since the leading bit of Scaled adds
  // one to it. Denormals have no leading bit.
  uint64_t Base = uint64_t(Unit + F.FractionBits + F.bias() - 1)
                  << F.FractionBits;
  uint64_t Result =
      std::min<uint64_t>(Base + uint64_t(Scaled), F.exponentMask());
  return Sign | uint32_t(Result);
}

bool conformance::isNaN(Float Type, uint32_t Bits) {
  Format F = format(Type);
  return (Bits & F.exponentMask()) == F.exponentMask() &&
         (Bits & F.fractionMask());
}

uint64_t conformance::ulpDistance(Float Type, uint32_t A, uint32_t B) {
  Format F = format(Type);
  auto Ordered = [&](uint32_t Bits) {
    int64_t Magnitude = Bits & (F.signMask() - 1);
    return Bits & F.signMask() ? -Magnitude : Magnitude;
  };
  int64_t Distance = Ordered(A) - Ordered(B);
  return uint64_t(Distance < 0 ? -Distance : Distance);
}

uint64_t conformance::hash(uint64_t Value) {
  Value = (Value ^ (Value >> 30)) * 0xbf58476d1ce4e5b9ull;
  Value = (Value ^ (Value >> 27)) * 0x94d049bb133111ebull;
  return Value ^ (Value >> 31);
}

uint64_t Random::next() { return hash(State += 0x9e3779b97f4a7c15ull); }

double Random::uniform(double Low, double High) {
  return Low + (High - Low) * (double(next() >> 11) * 0x1p-53);
}
