//===- InPlaceTest.cpp - merge_state_in_place -----------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Sides.h"

#include <cstring>

using namespace conformance;

namespace {

enum Masking { NoMask, Mixed, NoneLive, AllLive };

/// True if the rows of token \p T are merged.
bool isLive(Masking Mask, int64_t T) {
  return Mask == NoMask || Mask == AllLive || (Mask == Mixed && T % 3 != 1);
}

testing::AssertionResult mergesInPlace(const StateCase &Case, int64_t N,
                                       Spread How, Masking Mask) {
  auto [H, D] = Case.Shape;
  Sides S(Case.Type, N * H, 2, D, 29);
  TestTensor V = payloadTensor(Case.Type, {N, H, D}, How, 0);
  TestTensor L = lseTensor({N, H}, How, 0);
  TestTensor Other = payloadTensor(Case.Type, {N, H, D}, How, 1);
  TestTensor OtherLse = lseTensor({N, H}, How, 1);
  TestTensor Flags(device(), MLAFIX_U8,
                   spread({N}, How, 0, /*IsPayload=*/false, 1));
  for (int64_t T = 0; T < N; ++T) {
    // Any nonzero byte means merge.
    Flags.set({T}, isLive(Mask, T) ? (T % 2 ? 0xff : 1) : 0);
    for (int64_t I = 0; I < H; ++I) {
      setRow(V, S.payload(T * H + I, 0), D, T, I);
      setRow(Other, S.payload(T * H + I, 1), D, T, I);
      L.setFloat({T, I}, S.lse(T * H + I, 0));
      OtherLse.setFloat({T, I}, S.lse(T * H + I, 1));
    }
  }
  launchOn(kernel("merge_state_in_place", Case.bindings()),
           {V.view(), L.view(), Other.view(), OtherLse.view(),
            Mask == NoMask ? mlafix::Tensor::none() : Flags.view()},
           {&V, &L, &Other, &OtherLse, &Flags});
  for (int64_t T = 0; T < N; ++T)
    for (int64_t I = 0; I < H; ++I) {
      int64_t Row = T * H + I;
      if (isLive(Mask, T)) {
        testing::AssertionResult Good =
            rowMatches(S.expected(Row, 0, 2, {Case.Type, 1, Case.BaseTwo}),
                       Case.Type, V, &L, T, I);
        if (!Good)
          return Good << " (token " << T << ", head " << I << ")";
        continue;
      }
      // Not even a NaN's bits change where nobody merges.
      uint32_t Lse;
      float Value = S.lse(Row, 0);
      std::memcpy(&Lse, &Value, 4);
      bool Same = L.get({T, I}) == Lse;
      for (int64_t E = 0; E < D; ++E)
        Same &= V.get({T, I, E}) == S.payload(Row, 0)[E];
      if (!Same)
        return testing::AssertionFailure()
               << "masked row (token " << T << ", head " << I << ") changed";
    }
  return nothingElseWritten({&Other, &OtherLse, &Flags}, {&V, &L});
}

class MergeInPlace : public testing::TestWithParam<StateCase> {};

} // namespace

TEST_P(MergeInPlace, every_mask_and_layout) { // N11
  for (Spread How : AllSpreads)
    for (Masking Mask : {NoMask, Mixed, NoneLive, AllLive})
      ASSERT_TRUE(mergesInPlace(GetParam(), 8, How, Mask))
          << "spread " << int(How) << ", mask " << int(Mask);
  ASSERT_TRUE(mergesInPlace(GetParam(), 0, Spread::Dense, Mixed)); // N12
}

TEST(LargeMergeInPlace, rows_are_right_where_they_are_read_late) {
  StateCase Case = {{16, 128}, Float::BF16, true}; // 17 MB a tensor
  for (Masking Mask : {NoMask, Mixed})
    EXPECT_TRUE(mergesInPlace(Case, 4200, Spread::Dense, Mask));
}

INSTANTIATE_TEST_SUITE_P(All, MergeInPlace, testing::ValuesIn(stateCases()),
                         caseName);
