//===- FixupRun.cpp - one checked fixup_zero_kv_rows ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "FixupRun.h"
#include "Reference.h"

#include <cmath>
#include <cstring>

using namespace conformance;

namespace {

Layout payloadLayout(const FixupSetup &S) {
  Layout L = Layout::contiguous({S.N, S.H, S.D});
  int64_t Pack = 16 / int64_t(byteWidth(S.Type));
  if (S.How == Style::Misaligned) {
    L.Offset = 1;
  } else if (S.How == Style::Padded) {
    int64_t Head = (S.D + Pack - 1) / Pack * Pack + Pack;
    L.Strides = {S.H * Head + Pack, Head, 1};
  } else if (S.How == Style::PaddedOdd) {
    L.Strides = {S.H * (S.D + 1) + 3, S.D + 1, 1};
  }
  return L;
}

Layout lseLayout(const FixupSetup &S) {
  int64_t Rows = S.LseRowsFirst ? S.N : S.H;
  int64_t Columns = S.LseRowsFirst ? S.H : S.N;
  Layout L = Layout::contiguous({Rows, Columns});
  if (S.How == Style::SlicedLse) {
    L.Offset = 5;
    L.Strides = {Columns + 11, 1};
  } else if (S.How == Style::Padded || S.How == Style::PaddedOdd) {
    L.Strides = {2 * Columns, 2};
  } else if (S.How == Style::Misaligned) {
    L.Offset = 1;
  }
  return L;
}

} // namespace

std::vector<int32_t>
conformance::prefixSums(const std::vector<int32_t> &Lengths) {
  std::vector<int32_t> Sums = {0};
  for (int32_t Length : Lengths)
    Sums.push_back(Sums.back() + Length);
  return Sums;
}

FixupRun::FixupRun(Device &On, FixupSetup S)
    : On(On), Setup(std::move(S)),
      Code(kernel("fixup_zero_kv_rows", Setup.H, Setup.D, Setup.Type)) {
  Out = std::make_unique<TestTensor>(On, dtypeOf(Setup.Type),
                                     payloadLayout(Setup));
  Lse = std::make_unique<TestTensor>(On, MLAFIX_F32, lseLayout(Setup));
  KvLens = std::make_unique<TestTensor>(
      On, MLAFIX_I32, Layout::contiguous({int64_t(Setup.KvLens.size())}));
  CuSeqlens = std::make_unique<TestTensor>(
      On, MLAFIX_I32, Layout::contiguous({int64_t(Setup.CuSeqlens.size())}));
  refill(Setup.KvLens, Setup.CuSeqlens);
}

uint32_t FixupRun::payloadBits(int64_t T, int64_t H, int64_t I) const {
  // Rows with keys contain arbitrary bits, including NaN. The kernel must not
  // change these rows.
  uint32_t Bits = uint32_t(hash((T * Setup.H + H) * Setup.D + I + 1));
  return Setup.Type == Float::F32 ? Bits : Bits & 0xffff;
}

float FixupRun::lseValue(int64_t T, int64_t H) const {
  return float(hash(T * 131 + H) % 1000) / 8;
}

void FixupRun::refill(std::vector<int32_t> Lens, std::vector<int32_t> Cu) {
  Setup.KvLens = std::move(Lens);
  Setup.CuSeqlens = std::move(Cu);
  std::vector<bool> Dead = deadRows(Setup.N, Setup.KvLens, Setup.CuSeqlens);
  Out->poison();
  Lse->poison();
  for (int64_t T = 0; T < Setup.N; ++T)
    for (int64_t H = 0; H < Setup.H && !Dead[T]; ++H) {
      for (int64_t I = 0; I < Setup.D; ++I)
        Out->set({T, H, I}, payloadBits(T, H, I));
      if (Setup.LseRowsFirst)
        Lse->setFloat({T, H}, lseValue(T, H));
      else
        Lse->setFloat({H, T}, lseValue(T, H));
    }
  for (size_t I = 0; I < Setup.KvLens.size(); ++I)
    KvLens->setInt({int64_t(I)}, Setup.KvLens[I]);
  for (size_t I = 0; I < Setup.CuSeqlens.size(); ++I)
    CuSeqlens->setInt({int64_t(I)}, Setup.CuSeqlens[I]);
  for (TestTensor *Tensor :
       {Out.get(), Lse.get(), KvLens.get(), CuSeqlens.get()})
    Tensor->upload();
}

void FixupRun::launch(uint32_t Flags) {
  std::vector<int> Order =
      Setup.LseRowsFirst ? std::vector<int>{1, 0} : std::vector<int>{0, 1};
  Code.launch(
      {Out->view(), Lse->view(Order), KvLens->view(), CuSeqlens->view()},
      On.handle(), On.stream(), Flags);
}

void FixupRun::fetch() {
  On.synchronize();
  for (TestTensor *Tensor :
       {Out.get(), Lse.get(), KvLens.get(), CuSeqlens.get()})
    Tensor->download();
}

void FixupRun::run(uint32_t Flags) {
  launch(Flags);
  fetch();
}

testing::AssertionResult FixupRun::check() const {
  std::vector<bool> Dead = deadRows(Setup.N, Setup.KvLens, Setup.CuSeqlens);
  for (int64_t T = 0; T < Setup.N; ++T)
    for (int64_t H = 0; H < Setup.H; ++H) {
      auto Fail = [&](const std::string &What, uint32_t Expected,
                      uint32_t Got) {
        return testing::AssertionFailure()
               << (Dead[T] ? "dead" : "live") << " row (token " << T
               << ", head " << H << "): " << What << ": expected bits 0x"
               << std::hex << Expected << ", got 0x" << Got;
      };
      for (int64_t I = 0; I < Setup.D; ++I) {
        uint32_t Expected = Dead[T] ? 0 : payloadBits(T, H, I);
        uint32_t Got = Out->get({T, H, I});
        if (Got != Expected)
          return Fail("out[" + std::to_string(I) + "]", Expected, Got);
      }
      float Value = Dead[T] ? -INFINITY : lseValue(T, H);
      uint32_t Expected;
      std::memcpy(&Expected, &Value, 4);
      uint32_t Got = Setup.LseRowsFirst ? Lse->get({T, H}) : Lse->get({H, T});
      if (Got != Expected)
        return Fail("lse", Expected, Got);
    }
  std::string Why = Out->guardsIntact();
  if (Why.empty())
    Why = Lse->guardsIntact();
  if (!Why.empty())
    return testing::AssertionFailure() << "written beside the rows: " << Why;
  Why = KvLens->unchanged();
  if (Why.empty())
    Why = CuSeqlens->unchanged();
  if (!Why.empty())
    return testing::AssertionFailure() << "an input was written: " << Why;
  return testing::AssertionSuccess();
}
