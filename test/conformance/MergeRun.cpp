//===- MergeRun.cpp - one checked call of merge_attn_states ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "MergeRun.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

using namespace conformance;

namespace {

/// Returns the layout of a payload tensor [n, H, D]. Each \p Operand gets
/// different gaps.
Layout payloadLayout(const MergeSetup &S, int Operand) {
  Layout L = Layout::contiguous({S.N, S.H, S.D});
  int64_t Pack = 16 / int64_t(byteWidth(S.Type));
  switch (S.How) {
  case Style::Contiguous:
  case Style::SlicedLse:
    break;
  case Style::Misaligned:
    L.Offset = 1;
    break;
  case Style::Padded: {
    // Gaps are multiples of 16 bytes, so that the aligned variant still
    // applies.
    int64_t Head = (S.D + Pack - 1) / Pack * Pack + Operand * Pack;
    L.Strides = {S.H * Head + (Operand + 1) * Pack, Head, 1};
    break;
  }
  case Style::PaddedOdd:
    L.Strides = {S.H * (S.D + 1 + Operand) + 3, S.D + 1 + Operand, 1};
    break;
  }
  return L;
}

/// Returns the layout of an lse tensor: [H, n], or [n, H] if LseRowsFirst is
/// set.
Layout lseLayout(const MergeSetup &S, int Operand) {
  int64_t Rows = S.LseRowsFirst ? S.N : S.H,
          Columns = S.LseRowsFirst ? S.H : S.N;
  Layout L = Layout::contiguous({Rows, Columns});
  if (S.How == Style::SlicedLse) {
    L.Offset = 5 + Operand;
    L.Strides = {Columns + 11 + Operand, 1};
  } else if (S.How == Style::Padded || S.How == Style::PaddedOdd) {
    L.Strides = {2 * Columns + Operand, 2};
  } else if (S.How == Style::Misaligned) {
    L.Offset = 1;
  }
  return L;
}

} // namespace

MergeRun::MergeRun(Device &On, const MergeSetup &S)
    : On(On), Setup(S),
      Code(conformance::kernel("merge_attn_states", S.H, S.D, S.Type)) {
  mlafix_dtype Type = dtypeOf(S.Type);
  auto Payload = [&](int Operand) {
    return std::make_unique<TestTensor>(On, Type, payloadLayout(S, Operand));
  };
  auto Lse = [&](int Operand) {
    return std::make_unique<TestTensor>(On, MLAFIX_F32, lseLayout(S, Operand));
  };
  Prefix = Payload(0);
  PrefixLse = Lse(0);
  Suffix = Payload(1);
  SuffixLse = Lse(1);
  if (S.Where == MergeSetup::Separate) {
    Out = Payload(2);
    if (S.WantLse)
      OutLse = Lse(2);
  }
  if (!Setup.Kind)
    Setup.Kind = [](int64_t T, int64_t H) {
      return RowKind(hash(T * 7919 + H) % uint64_t(RowKind::Count));
    };
  refill(S.Seed);
}

void MergeRun::refill(uint64_t Seed) {
  Setup.Seed = Seed;
  int64_t Rows = Setup.N * Setup.H;
  PrefixBits.resize(Rows * Setup.D);
  SuffixBits.resize(Rows * Setup.D);
  PrefixLses.resize(Rows);
  SuffixLses.resize(Rows);
  for (int64_t T = 0; T < Setup.N; ++T)
    for (int64_t H = 0; H < Setup.H; ++H)
      fillRow(T, H);
  for (TestTensor *Tensor :
       {Prefix.get(), PrefixLse.get(), Suffix.get(), SuffixLse.get()})
    Tensor->upload();
  if (Out) {
    Out->poison();
    Out->upload();
  }
  if (OutLse) {
    OutLse->poison();
    OutLse->upload();
  }
}

uint32_t MergeRun::getLse(const TestTensor &From, int64_t T, int64_t H) const {
  return Setup.LseRowsFirst ? From.get({T, H}) : From.get({H, T});
}

void MergeRun::setLse(TestTensor &To, int64_t T, int64_t H, float Value) {
  if (Setup.LseRowsFirst)
    To.setFloat({T, H}, Value);
  else
    To.setFloat({H, T}, Value);
}

TestTensor &MergeRun::out() const {
  switch (Setup.Where) {
  case MergeSetup::OverPrefix:
    return *Prefix;
  case MergeSetup::OverSuffix:
    return *Suffix;
  case MergeSetup::Separate:
    break;
  }
  return *Out;
}

TestTensor *MergeRun::outLse() const {
  if (!Setup.WantLse)
    return nullptr;
  switch (Setup.Where) {
  case MergeSetup::OverPrefix:
    return PrefixLse.get();
  case MergeSetup::OverSuffix:
    return SuffixLse.get();
  case MergeSetup::Separate:
    break;
  }
  return OutLse.get();
}

std::vector<mlafix::Arg> MergeRun::arguments() const {
  // The kernel takes every lse as [H, n]. An lse that is stored as [n, H] is
  // passed as a transposed view.
  std::vector<int> Order =
      Setup.LseRowsFirst ? std::vector<int>{1, 0} : std::vector<int>{0, 1};
  TestTensor *Lse = outLse();
  return {out().view(),     Lse ? Lse->view(Order) : mlafix::Tensor::none(),
          Prefix->view(),   PrefixLse->view(Order),
          Suffix->view(),   SuffixLse->view(Order),
          Setup.ContextRows};
}

void MergeRun::launch(uint32_t Flags) {
  Code.launch(arguments(), On.handle(), On.stream(), Flags);
}

void MergeRun::fetch() {
  On.synchronize();
  for (TestTensor *Tensor : {Prefix.get(), PrefixLse.get(), Suffix.get(),
                             SuffixLse.get(), Out.get(), OutLse.get()})
    if (Tensor)
      Tensor->download();
}

void MergeRun::run(uint32_t Flags) {
  launch(Flags);
  fetch();
}

static uint32_t withOneNaN(Float Type, uint32_t Bits) {
  return isNaN(Type, Bits) ? ~0u : Bits;
}

std::vector<uint32_t> MergeRun::rowBits(int64_t T, int64_t H) const {
  std::vector<uint32_t> Bits;
  for (int64_t I = 0; I < Setup.D; ++I)
    Bits.push_back(withOneNaN(Setup.Type, out().get({T, H, I})));
  if (TestTensor *Lse = outLse())
    Bits.push_back(withOneNaN(Float::F32, getLse(*Lse, T, H)));
  return Bits;
}

std::string MergeRun::checkRow(int64_t T, int64_t H) const {
  int64_t D = Setup.D, Row = T * Setup.H + H;
  bool IsPast = T >= Setup.ContextRows;
  std::string Why;
  Side P{IsPast ? nullptr : &PrefixBits[Row * D], PrefixLses[Row]};
  ExpectedRow Expected =
      mergeReference(Setup.Type, D, P, {&SuffixBits[Row * D], SuffixLses[Row]});
  uint32_t Poison = Setup.Type == Float::F32 ? 0xffffffffu : 0xffffu;
  for (int64_t I = 0; I < D; ++I) {
    uint32_t Bits = out().get({T, H, I});
    if (Bits == Poison)
      Why = "still holds the poison";
    else if (matches(Setup.Type, Expected.Payload[I], Bits, Why))
      continue;
    return "out[" + std::to_string(I) + "]: " + Why;
  }
  TestTensor *Lse = outLse();
  if (!Lse)
    return "";
  uint32_t Bits = getLse(*Lse, T, H);
  if (Bits == 0xffffffffu)
    Why = "still holds the poison";
  else if (matches(Float::F32, Expected.Lse, Bits, Why))
    return "";
  return "out_lse: " + Why;
}

testing::AssertionResult MergeRun::check() const {
  for (int64_t T = 0; T < Setup.N; ++T)
    for (int64_t H = 0; H < Setup.H; ++H) {
      int64_t Row = T * Setup.H + H;
      if (std::string Wrong = checkRow(T, H); !Wrong.empty())
        return testing::AssertionFailure()
               << "row (token " << T << ", head " << H << "), kind "
               << int(Setup.Kind(T, H)) << ", prefix lse " << PrefixLses[Row]
               << ", suffix lse " << SuffixLses[Row]
               << (T >= Setup.ContextRows ? ", past the threshold" : "") << ": "
               << Wrong;
    }
  struct {
    const char *Name;
    TestTensor *Tensor;
  } All[] = {{"prefix", Prefix.get()}, {"prefix_lse", PrefixLse.get()},
             {"suffix", Suffix.get()}, {"suffix_lse", SuffixLse.get()},
             {"out", Out.get()},       {"out_lse", OutLse.get()}};
  for (auto &Entry : All) {
    if (!Entry.Tensor)
      continue;
    bool Written = Entry.Tensor == &out() || Entry.Tensor == outLse();
    std::string Why =
        Written ? Entry.Tensor->guardsIntact() : Entry.Tensor->unchanged();
    if (!Why.empty())
      return testing::AssertionFailure()
             << Entry.Name
             << (Written ? ": written beside its elements: "
                         : ": an input was written: ")
             << Why;
  }
  return testing::AssertionSuccess();
}
