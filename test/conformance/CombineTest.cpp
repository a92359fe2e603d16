//===- CombineTest.cpp - the combine of split KV --------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Sides.h"

using namespace conformance;

namespace {

struct CombineCase {
  HeadShape Shape;
  Float Out, Partial;

  std::string bindings() const {
    return "H=" + std::to_string(Shape.H) + ",D=" + std::to_string(Shape.D) +
           ",O=" + spelling(Out) + ",T=" + spelling(Partial);
  }
};

std::vector<CombineCase> combineCases() {
  std::vector<CombineCase> All;
  for (HeadShape Shape : libraryShapes()) {
    for (Float Out : StateTypes)
      All.push_back({Shape, Out, Float::F32});
    All.push_back({Shape, Float::BF16, Float::BF16});
  }
  return All;
}

/// B requests of L tokens in S splits. \p Transposed: the lse lies as
/// [S, B, H, L], as FlashAttention leaves it.
testing::AssertionResult combines(const CombineCase &Case, int64_t S, int64_t B,
                                  int64_t L, Spread How, bool Transposed,
                                  bool WantLse = true) {
  auto [H, D] = Case.Shape;
  Sides All(Case.Partial, B * L * H, S, D, 17);
  TestTensor Partial = payloadTensor(Case.Partial, {S, B, L, H, D}, How, 0);
  TestTensor Lse = lseTensor(Transposed ? std::vector<int64_t>{S, B, H, L}
                                        : std::vector<int64_t>{S, B, L, H},
                             Transposed ? Spread::Dense : How, 0);
  TestTensor Out = payloadTensor(Case.Out, {B, L, H, D}, How, 1);
  TestTensor OutLse = lseTensor({B, L, H}, How, 1);
  auto RowOf = [=, H = H](int64_t I, int64_t T, int64_t Head) {
    return (I * L + T) * H + Head;
  };
  for (int64_t J = 0; J < S; ++J)
    for (int64_t I = 0; I < B; ++I)
      for (int64_t T = 0; T < L; ++T)
        for (int64_t Head = 0; Head < H; ++Head) {
          int64_t Row = RowOf(I, T, Head);
          setRow(Partial, All.payload(Row, J), D, J, I, T, Head);
          if (Transposed)
            Lse.setFloat({J, I, Head, T}, All.lse(Row, J));
          else
            Lse.setFloat({J, I, T, Head}, All.lse(Row, J));
        }
  launchOn(kernel("combine_split_kv", Case.bindings()),
           {Out.view(), WantLse ? OutLse.view() : mlafix::Tensor::none(),
            Partial.view(), Transposed ? Lse.view({0, 1, 3, 2}) : Lse.view()},
           {&Partial, &Lse, &Out, &OutLse});
  for (int64_t I = 0; I < B; ++I)
    for (int64_t T = 0; T < L; ++T)
      for (int64_t Head = 0; Head < H; ++Head) {
        testing::AssertionResult Good =
            rowMatches(All.expected(RowOf(I, T, Head), 0, S, {Case.Out}),
                       Case.Out, Out, WantLse ? &OutLse : nullptr, I, T, Head);
        if (!Good)
          return Good << " (request " << I << ", token " << T << ", head "
                      << Head << ", " << S << " splits)";
      }
  return nothingElseWritten({&Partial, &Lse}, {&Out, &OutLse});
}

class Combine : public testing::TestWithParam<CombineCase> {};

} // namespace

TEST_P(Combine, splits_of_every_count_and_layout) {
  for (Spread How : AllSpreads)
    for (int64_t S : {0, 1, 2, 6})
      for (bool Transposed : {false, true})
        ASSERT_TRUE(combines(GetParam(), S, 2, 3, How, Transposed))
            << "spread " << int(How) << (Transposed ? ", transposed" : "");
  ASSERT_TRUE(combines(GetParam(), 3, 2, 2, Spread::Dense, true, false));
  ASSERT_TRUE(combines(GetParam(), 3, 0, 2, Spread::Dense, false));
  ASSERT_TRUE(combines(GetParam(), 3, 2, 0, Spread::Dense, false));
}

INSTANTIATE_TEST_SUITE_P(All, Combine, testing::ValuesIn(combineCases()),
                         [](const testing::TestParamInfo<CombineCase> &Info) {
                           return "H" + std::to_string(Info.param.Shape.H) +
                                  "_D" + std::to_string(Info.param.Shape.D) +
                                  "_" + spelling(Info.param.Partial) + "_to_" +
                                  spelling(Info.param.Out);
                         });
