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
  case Float::F8E4M3FN:
    return {4, 3};
  }
  return {8, 23};
}

} // namespace

/// e4m3fn has no infinities: the last exponent is one more binade, but for its
/// last fraction, which is NaN.
static constexpr uint32_t Fp8NaN = 0x7f, Fp8Largest = 0x7e;

size_t conformance::byteWidth(Float Type) {
  return Type == Float::F32 ? 4 : Type == Float::F8E4M3FN ? 1 : 2;
}

const char *conformance::spelling(Float Type) {
  switch (Type) {
  case Float::BF16:
    return "bf16";
  case Float::F16:
    return "f16";
  case Float::F32:
    return "f32";
  case Float::F8E4M3FN:
    return "f8e4m3fn";
  }
  return "?";
}

double conformance::toDouble(Float Type, uint32_t Bits) {
  if (Type == Float::BF16 ||
      Type == Float::F32) { // The upper half of an f32 is a bf16.
    uint32_t Wide = Type == Float::BF16 ? Bits << 16 : Bits;
    float Value;
    std::memcpy(&Value, &Wide, 4);
    return Value;
  }
  Format F = format(Type);
  int Exponent = (Bits & F.exponentMask()) >> F.FractionBits;
  uint32_t Fraction = Bits & F.fractionMask();
  double Value;
  if (Type == Float::F8E4M3FN && (Bits & Fp8NaN) == Fp8NaN)
    Value = NAN;
  else if (Exponent == (1 << F.ExponentBits) - 1 && Type != Float::F8E4M3FN)
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
  if (Type == Float::F8E4M3FN && std::isnan(Value))
    return Fp8NaN;
  if (std::isnan(Value))
    return F.exponentMask() | (1u << (F.FractionBits - 1));
  uint32_t Sign = std::signbit(Value) ? F.signMask() : 0;
  double Magnitude = std::fabs(Value);
  if (Magnitude == 0)
    return Sign;
  if (std::isinf(Magnitude))
    return Sign | (Type == Float::F8E4M3FN ? Fp8Largest : F.exponentMask());
  int Exponent;
  std::frexp(Magnitude, &Exponent);
  // Units of the last place of Magnitude's binade, or of the denormals.
  int Unit = std::max(Exponent - 1, 1 - F.bias()) - F.FractionBits;
  // nearbyint rounds ties to even; the quotient is exact.
  double Scaled = std::nearbyint(std::ldexp(Magnitude, -Unit));
  // Adding the count to the binade's first bits carries into the exponent.
  uint64_t Base = uint64_t(Unit + F.FractionBits + F.bias() - 1)
                  << F.FractionBits;
  uint64_t Result = Base + uint64_t(Scaled);
  if (Type == Float::F8E4M3FN)
    Result = std::min<uint64_t>(Result, Fp8Largest);
  else if (Result >= F.exponentMask())
    Result = F.exponentMask();
  return Sign | uint32_t(Result);
}

bool conformance::isNaN(Float Type, uint32_t Bits) {
  if (Type == Float::F8E4M3FN)
    return (Bits & Fp8NaN) == Fp8NaN;
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

uint32_t conformance::loadBits(Float Type, const void *Data, int64_t Index) {
  if (byteWidth(Type) == 1)
    return static_cast<const uint8_t *>(Data)[Index];
  if (byteWidth(Type) == 2) {
    uint16_t Bits;
    std::memcpy(&Bits, static_cast<const char *>(Data) + 2 * Index, 2);
    return Bits;
  }
  uint32_t Bits;
  std::memcpy(&Bits, static_cast<const char *>(Data) + 4 * Index, 4);
  return Bits;
}

void conformance::storeBits(Float Type, void *Data, int64_t Index,
                            uint32_t Bits) {
  if (byteWidth(Type) == 1) {
    static_cast<uint8_t *>(Data)[Index] = uint8_t(Bits);
    return;
  }
  if (byteWidth(Type) == 2) {
    uint16_t Narrow = uint16_t(Bits);
    std::memcpy(static_cast<char *>(Data) + 2 * Index, &Narrow, 2);
    return;
  }
  std::memcpy(static_cast<char *>(Data) + 4 * Index, &Bits, 4);
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
