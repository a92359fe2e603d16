//===- Reference.cpp - merges in f64 --------------------------------------===//
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

/// Merges two or more live states. No lse may be NaN.
ExpectedRow mergeLive(Float Type, int64_t D, const std::vector<Side> &Live) {
  ExpectedRow Row;
  double Max = -INFINITY, Sum = 0;
  for (const Side &S : Live)
    Max = std::max(Max, double(S.Lse));
  std::vector<double> Weights;
  for (const Side &S : Live) {
    // Weights are f32 (N7). A weight below half the smallest denormal is zero,
    // and its payload is ignored (N5).
    double Weight = std::exp(S.Lse - Max);
    Weights.push_back(Weight < 0x1p-150 ? 0 : Weight);
    Sum += Weights.back();
  }
  for (int64_t I = 0; I < D; ++I) {
    double Value = 0, Magnitude = 0;
    for (size_t J = 0; J < Live.size(); ++J) {
      double Term =
          Weights[J] ? Weights[J] * toDouble(Type, Live[J].Payload[I]) : 0;
      Value += Term;
      Magnitude += std::fabs(Term);
    }
    Row.Payload.push_back(near(Value / Sum, Magnitude / Sum));
  }
  double Lse = Max + std::log(Sum);
  Row.Lse = near(Lse, std::max(1.0, std::fabs(Lse)));
  return Row;
}

} // namespace

bool conformance::isEmpty(float Lse) { return std::isinf(Lse); }

ExpectedRow conformance::mergeReference(Float Type, int64_t D, Side Prefix,
                                        Side Suffix) {
  std::vector<Side> Live;
  bool Faulty = false;
  for (const Side &S : {Prefix, Suffix}) {
    if (!S.Payload || isEmpty(S.Lse)) // N2, N5
      continue;
    Live.push_back(S);
    Faulty |= std::isnan(S.Lse);
  }
  ExpectedRow Row;
  if (Live.empty()) { // N1, N3
    Row.Payload.assign(D, exactly(0));
    Row.Lse = exactly(bitsOf(-INFINITY));
    return Row;
  }
  if (Faulty) { // N6
    Expected E;
    E.How = Expected::NaN;
    Row.Payload.assign(D, E);
    Row.Lse = E;
    return Row;
  }
  if (Live.size() == 1) { // N4
    for (int64_t I = 0; I < D; ++I)
      Row.Payload.push_back(exactly(Live[0].Payload[I]));
    Row.Lse = exactly(bitsOf(Live[0].Lse));
    return Row;
  }
  return mergeLive(Type, D, Live);
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
    // If terms cancel, the error of f32 accumulation (N7) is relative to the
    // terms, not to the sum. Below the normal range it is absolute.
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

std::vector<bool> conformance::deadRows(int64_t N,
                                        const std::vector<int32_t> &KvLens,
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
