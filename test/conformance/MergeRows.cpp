//===- MergeRows.cpp - The contents of rows for merges --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "MergeRun.h"

#include <algorithm>
#include <cmath>
#include <optional>

using namespace conformance;

namespace {

uint32_t nanBits(Float Type) {
  // Returns a NaN that differs from the poison and from the default NaN of a
  // CPU or GPU.
  switch (Type) {
  case Float::BF16:
    return 0x7fc1;
  case Float::F16:
    return 0x7e01;
  case Float::F32:
    return 0x7fc00001;
  }
  return 0;
}

/// Returns the bits of -0.0, a denormal of either sign, infinity of either
/// sign, NaN, the largest finite value, or 1.5.
uint32_t oddBits(Float Type, uint64_t Choice) {
  uint32_t Sign = Type == Float::F32 ? 0x80000000u : 0x8000u;
  switch (Choice % 8) {
  case 0:
    return Sign;
  case 1:
    return 1;
  case 2:
    return Sign | 3;
  case 3:
    return fromDouble(Type, INFINITY);
  case 4:
    return fromDouble(Type, -INFINITY);
  case 5:
    return nanBits(Type);
  case 6:
    return fromDouble(Type, INFINITY) - 1;
  default:
    return fromDouble(Type, 1.5);
  }
}

/// Says with which values a payload is filled.
enum Content { Values, AllNaN, AllInf, Odd };

/// The prefix and the suffix of a row.
struct RowSides {
  double PrefixLse, SuffixLse;
  Content InPrefix = Content::Values, InSuffix = Content::Values;
  double Scale = 4;       // the magnitude of Content::Values
  bool IsNegated = false; // true if the suffix is the negated prefix
};

/// The lses and contents of the two sides of a row of `Kind`. If an lse is
/// nullopt, that side keeps the lse of an ordinary row.
struct FixedKind {
  RowKind Kind;
  std::optional<double> PrefixLse, SuffixLse;
  Content InPrefix, InSuffix;
};

const FixedKind FixedKinds[] = {
    {RowKind::PrefixEmptyNaN, -INFINITY, {}, AllNaN, Values},
    {RowKind::PrefixEmptyInf, -INFINITY, {}, AllInf, Values},
    {RowKind::PrefixEmptyPlus, INFINITY, {}, AllNaN, Values},
    {RowKind::SuffixEmptyNaN, {}, -INFINITY, Values, AllNaN},
    {RowKind::SuffixEmptyInf, {}, -INFINITY, Values, AllInf},
    {RowKind::SuffixEmptyPlus, {}, INFINITY, Values, AllNaN},
    {RowKind::CopyOddValues, -INFINITY, {}, AllNaN, Odd},
    {RowKind::CopyOddValuesSuffix, {}, INFINITY, Odd, AllInf},
    {RowKind::BothEmpty, -INFINITY, -INFINITY, AllNaN, AllNaN},
    {RowKind::BothEmptyPlus, INFINITY, -INFINITY, Odd, AllInf},
    {RowKind::FarApart, 3e38, -3e38, Values, AllNaN},
    {RowKind::PrefixNaNLse, NAN, {}, Values, Values},
    {RowKind::SuffixNaNLse, -INFINITY, NAN, Values, Values},
};

/// Changes the two sides of an ordinary row to those of a row of `Kind`.
void apply(RowKind Kind, Float Type, RowSides &Row) {
  for (const FixedKind &Fixed : FixedKinds)
    if (Fixed.Kind == Kind) {
      Row.PrefixLse = Fixed.PrefixLse.value_or(Row.PrefixLse);
      Row.SuffixLse = Fixed.SuffixLse.value_or(Row.SuffixLse);
      Row.InPrefix = Fixed.InPrefix;
      Row.InSuffix = Fixed.InSuffix;
      return;
    }
  switch (Kind) {
  case RowKind::LargePayload:
    Row.Scale = Type == Float::F16 ? 30000 : 1e30;
    return;
  case RowKind::SmallPayload:
    Row.Scale = Type == Float::F16 ? 1e-4 : 1e-30;
    return;
  case RowKind::Cancelling:
    Row.PrefixLse = Row.SuffixLse;
    Row.IsNegated = true;
    return;
  case RowKind::PrefixUnderflow:
    Row.PrefixLse = Row.SuffixLse - 300;
    Row.InPrefix = AllNaN;
    return;
  case RowKind::SuffixUnderflow:
    Row.SuffixLse = Row.PrefixLse - 1000;
    Row.InSuffix = AllInf;
    return;
  default: // BothLive and HugeLse: fillRow has chosen the lses already
    return;
  }
}

} // namespace

void MergeRun::fillRow(int64_t T, int64_t H) {
  int64_t D = Setup.D;
  Float Type = Setup.Type;
  RowKind Kind = Setup.Kind(T, H);
  Random R(hash(Setup.Seed) ^ hash(((T) << 16) + H));
  double Center = R.uniform(-20, 20);
  double P = Center + R.uniform(-5, 5), S = Center + R.uniform(-5, 5);
  double Far = Kind == RowKind::HugeLse ? std::copysign(1e5, Center) : 0;
  RowSides Sides = {P + Far, S + Far};
  apply(Kind, Type, Sides);
  // Prefix rows past the threshold hold NaN, since they must not be read (N5).
  if (T >= Setup.ContextRows) {
    Sides.PrefixLse = NAN;
    Sides.InPrefix = AllNaN;
  }
  // A row has at most 256 distinct values, since the conversion to the narrow
  // type is slow.
  uint32_t Unit[256];
  for (int I = 0; I < std::min<int64_t>(256, 2 * D); ++I)
    Unit[I] = fromDouble(Type, R.uniform(-Sides.Scale, Sides.Scale));
  int64_t Row = T * Setup.H + H;
  auto Fill = [&](Content What, double Sign) {
    switch (What) {
    case AllNaN:
      return nanBits(Type);
    case AllInf:
      return fromDouble(Type, Sign * INFINITY);
    case Odd:
      return oddBits(Type, R.next());
    case Values:
      break;
    }
    return Unit[R.below(std::min<int64_t>(256, 2 * D))];
  };
  for (int64_t I = 0; I < D; ++I) {
    uint32_t A = Fill(Sides.InPrefix, I % 2 ? 1 : -1);
    uint32_t B = Fill(Sides.InSuffix, I % 3 ? 1 : -1);
    if (Sides.IsNegated && Sides.InPrefix == Values)
      B = A ^ (Type == Float::F32 ? 0x80000000u : 0x8000u);
    PrefixBits[Row * D + I] = A;
    SuffixBits[Row * D + I] = B;
    Prefix->set({T, H, I}, A);
    Suffix->set({T, H, I}, B);
  }
  PrefixLses[Row] = float(Sides.PrefixLse);
  SuffixLses[Row] = float(Sides.SuffixLse);
  setLse(*PrefixLse, T, H, float(Sides.PrefixLse));
  setLse(*SuffixLse, T, H, float(Sides.SuffixLse));
}
