//===- Reference.cpp - the two kernels in f64 -----------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

using namespace conformance;

namespace {

uint32_t bitsOf(float Value) {
  uint32_t Bits;
  std::memcpy(&Bits, &Value, 4);
  return Bits;
}

Expected exactly(uint32_t Bits) {
  Expected E;
  E.How = Expected::Exact;
  E.Bits = Bits;
  return E;
}

Expected near(double Value, double Magnitude) {
  Expected E;
  E.How = std::isnan(Value) ? Expected::NaN : Expected::Near;
  E.Value = Value;
  E.Magnitude = Magnitude;
  return E;
}

ExpectedRow copyOf(int64_t D, Side From) {
  ExpectedRow Row;
  for (int64_t I = 0; I < D; ++I)
    Row.Payload.push_back(exactly(From.Payload[I]));
  Row.Lse = exactly(bitsOf(From.Lse));
  return Row;
}

} // namespace

bool conformance::isEmpty(float Lse) { return std::isinf(Lse); }

ExpectedRow conformance::mergeReference(Float Type, int64_t D, Side Prefix,
                                        Side Suffix) {
  bool NoPrefix = !Prefix.Payload || isEmpty(Prefix.Lse);
  bool NoSuffix = !Suffix.Payload || isEmpty(Suffix.Lse);
  if (NoPrefix && NoSuffix) { // N3
    ExpectedRow Row;
    Row.Payload.assign(D, exactly(0));
    Row.Lse = exactly(bitsOf(-INFINITY));
    return Row;
  }
  if (!NoPrefix && std::isnan(Prefix.Lse)) // N6
    NoSuffix = false;
  if (!NoSuffix && std::isnan(Suffix.Lse))
    NoPrefix = false;
  bool Faulty = (Prefix.Payload && std::isnan(Prefix.Lse)) ||
                (Suffix.Payload && std::isnan(Suffix.Lse));
  ExpectedRow Row;
  if (Faulty) {
    Expected E;
    E.How = Expected::NaN;
    Row.Payload.assign(D, E);
    Row.Lse = E;
    return Row;
  }
  if (NoPrefix) // N4
    return copyOf(D, Suffix);
  if (NoSuffix)
    return copyOf(D, Prefix);

  double Max = std::max(double(Prefix.Lse), double(Suffix.Lse));
  double P = std::exp(Prefix.Lse - Max), S = std::exp(Suffix.Lse - Max);
  // Weights are f32 (N7): one below half its smallest denormal is zero, and
  // contributes nothing whatever its payload holds (N5).
  P = P < 0x1p-150 ? 0 : P;
  S = S < 0x1p-150 ? 0 : S;
  for (int64_t I = 0; I < D; ++I) {
    double Term1 = P ? P * toDouble(Type, Prefix.Payload[I]) : 0;
    double Term2 = S ? S * toDouble(Type, Suffix.Payload[I]) : 0;
    Row.Payload.push_back(near((Term1 + Term2) / (P + S),
                               (std::fabs(Term1) + std::fabs(Term2)) / (P + S)));
  }
  double Lse = Max + std::log(P + S);
  Row.Lse = near(Lse, std::max(1.0, std::fabs(Lse)));
  return Row;
}

namespace {

bool fits(Float Type, const Expected &E, uint32_t Bits) {
  switch (E.How) {
  case Expected::NaN:
    return isNaN(Type, Bits);
  case Expected::Exact:
    return isNaN(Type, E.Bits) ? isNaN(Type, Bits) : Bits == E.Bits;
  case Expected::Near: {
    if (isNaN(Type, Bits))
      return false;
    // Where terms cancel, f32 accumulation (N7) errs relative to the terms and
    // not to what is left of them; below the normal range, absolutely.
    double Slack = std::max(4e-6 * E.Magnitude, 0x1p-126);
    if (std::fabs(toDouble(Type, Bits) - E.Value) <= Slack)
      return true;
    uint32_t Rounded = fromDouble(Type, E.Value);
    return Bits == Rounded ||
           (Type != Float::F32 && ulpDistance(Type, Bits, Rounded) <= 1);
  }
  }
  return false;
}

} // namespace

bool conformance::matches(Float Type, const Expected &E, uint32_t Bits,
                          std::string &Why) {
  if (fits(Type, E, Bits))
    return true;
  std::ostringstream Text;
  Text.precision(10);
  if (E.How == Expected::NaN)
    Text << "expected NaN";
  else if (E.How == Expected::Exact)
    Text << "expected exactly " << toDouble(Type, E.Bits) << " (bits 0x"
         << std::hex << E.Bits << std::dec << ")";
  else
    Text << "expected about " << E.Value;
  Text << ", got " << toDouble(Type, Bits) << " (bits 0x" << std::hex << Bits
       << ") in " << spelling(Type);
  Why = Text.str();
  return false;
}

std::vector<bool>
conformance::deadRows(int64_t N, const std::vector<int32_t> &KvLens,
                      const std::vector<int32_t> &CuSeqlens) {
  std::vector<bool> Dead(N, false);
  for (size_t I = 0; I < KvLens.size() && I + 1 < CuSeqlens.size(); ++I) {
    int64_t Begin = CuSeqlens[I], End = CuSeqlens[I + 1];
    if (KvLens[I] > 0 || Begin < 0 || Begin > End || End > N)
      continue;
    std::fill(Dead.begin() + Begin, Dead.begin() + End, true);
  }
  return Dead;
}
