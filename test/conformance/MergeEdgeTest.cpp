//===- MergeEdgeTest.cpp - merge: one named behaviour a test --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "MergeRun.h"

#include <cmath>

using namespace conformance;

namespace {

/// All rows of one kind, in every dtype, at a head dim with and one without a
/// tail, on the aligned and on the tail variant.
testing::AssertionResult allRowsAre(RowKind Kind, int64_t N = 23) {
  for (Float Type : {Float::BF16, Float::F16, Float::F32})
    for (HeadShape Shape : {HeadShape{16, 128}, HeadShape{6, 3}})
      for (Style How : {Style::Contiguous, Style::Misaligned}) {
        MergeSetup S;
        S.N = S.ContextRows = N;
        S.H = Shape.H;
        S.D = Shape.D;
        S.Type = Type;
        S.How = How;
        S.Kind = [=](int64_t, int64_t) { return Kind; };
        MergeRun Run(device(), S);
        Run.run();
        if (testing::AssertionResult Good = Run.check(); !Good)
          return Good << " (" << spelling(Type) << ", D = " << S.D << ", style "
                      << int(How) << ")";
      }
  return testing::AssertionSuccess();
}

MergeSetup deepSeekRows(int64_t N, int64_t ContextRows) {
  MergeSetup S;
  S.N = N;
  S.ContextRows = ContextRows;
  S.H = 16;
  S.D = 128;
  S.Type = Float::BF16;
  return S;
}

} // namespace

TEST(Merge, both_sides_empty_yields_identity) { // N1, N3
  EXPECT_TRUE(allRowsAre(RowKind::BothEmpty));
}

TEST(Merge, plus_infinity_means_empty_too) { // N2
  EXPECT_TRUE(allRowsAre(RowKind::PrefixEmptyPlus));
  EXPECT_TRUE(allRowsAre(RowKind::SuffixEmptyPlus));
  EXPECT_TRUE(allRowsAre(RowKind::BothEmptyPlus));
}

TEST(Merge, one_side_empty_copies_the_other_bit_for_bit) { // N4
  EXPECT_TRUE(allRowsAre(RowKind::CopyOddValues));
  EXPECT_TRUE(allRowsAre(RowKind::CopyOddValuesSuffix));
}

TEST(Merge, garbage_in_an_empty_side_never_shows) { // N5
  EXPECT_TRUE(allRowsAre(RowKind::PrefixEmptyNaN));
  EXPECT_TRUE(allRowsAre(RowKind::PrefixEmptyInf));
  EXPECT_TRUE(allRowsAre(RowKind::SuffixEmptyNaN));
  EXPECT_TRUE(allRowsAre(RowKind::SuffixEmptyInf));
}

TEST(Merge, garbage_under_a_weight_that_underflows_never_shows) { // N5
  EXPECT_TRUE(allRowsAre(RowKind::PrefixUnderflow));
  EXPECT_TRUE(allRowsAre(RowKind::SuffixUnderflow));
  EXPECT_TRUE(allRowsAre(RowKind::FarApart));
}

TEST(Merge, nan_in_a_live_lse_is_not_hidden) { // N6
  EXPECT_TRUE(allRowsAre(RowKind::PrefixNaNLse));
  EXPECT_TRUE(allRowsAre(RowKind::SuffixNaNLse));
}

TEST(Merge, large_lse_keeps_its_precision) { // N10
  EXPECT_TRUE(allRowsAre(RowKind::HugeLse));
  EXPECT_TRUE(allRowsAre(RowKind::Cancelling));
  EXPECT_TRUE(allRowsAre(RowKind::LargePayload));
  EXPECT_TRUE(allRowsAre(RowKind::SmallPayload));
}

TEST(Merge, no_rows_launch_nothing_and_succeed) { // N12
  MergeSetup S = deepSeekRows(0, 0);
  MergeRun Run(device(), S);
  EXPECT_NO_THROW(Run.run());
  EXPECT_TRUE(Run.check());
}

TEST(Merge, threshold_beyond_n_is_an_error) {
  MergeRun Run(device(), deepSeekRows(5, 6));
  try {
    Run.launch();
    FAIL() << "expected an error";
  } catch (const mlafix::Error &Error) {
    EXPECT_EQ(MLAFIX_INVALID_ARGUMENT, Error.status());
    EXPECT_NE(std::string::npos, std::string(Error.what()).find("context_rows"))
        << Error.what();
  }
  MergeRun Negative(device(), deepSeekRows(5, -1));
  EXPECT_THROW(Negative.launch(), mlafix::Error);
}

TEST(Merge, partial_overlap_is_an_error_and_launches_nothing) { // N11
  MergeRun Run(device(), deepSeekRows(8, 8));
  std::vector<mlafix::Arg> Arguments = Run.arguments();
  // out = rows [0, 7), suffix = rows [1, 8) of one buffer.
  TestTensor Both(device(), MLAFIX_BF16, Layout::contiguous({8, 16, 128}));
  char *Base = static_cast<char *>(Both.data());
  auto Rows = [&](int64_t First) {
    return mlafix::Tensor::contiguous(Base + First * 16 * 128 * 2, MLAFIX_BF16,
                                      {7, 16, 128}, device().handle());
  };
  TestTensor Lse(device(), MLAFIX_F32, Layout::contiguous({16, 7}));
  TestTensor Prefix(device(), MLAFIX_BF16, Layout::contiguous({7, 16, 128}));
  Both.upload();
  EXPECT_THROW(
      Run.kernel().launch({Rows(0), mlafix::Tensor::none(), Prefix.view(),
                           Lse.view(), Rows(1), Lse.view(), int64_t(7)},
                          device().handle(), device().stream(), LaunchFlags),
      mlafix::Error);
  Both.download();
  EXPECT_EQ("", Both.unchanged());
}

// In place, 16 MB a tensor and more, a GPU reads the row that is replaced
// behind its lse, and not at all where that is infinite.
TEST(Merge, large_calls_in_place_hold_every_kind_of_row) { // N11
  MergeSetup S = deepSeekRows(4200, 3000);
  S.Where = MergeSetup::OverSuffix;
  for (Style How : {Style::Contiguous, Style::Padded, Style::Misaligned}) {
    S.How = How;
    MergeRun Run(device(), S);
    Run.run();
    ASSERT_TRUE(Run.check()) << "style " << int(How);
  }
}

// vLLM #36540: only the first prefill_tokens_with_context tokens have a prefix;
// the rest copies the suffix. Buffers come from `empty`, never `zeros`.
TEST(Merge, vllm_36540_rows_past_the_threshold_copy_the_suffix) {
  for (int64_t ContextRows : {0, 1, 255, 256, 511, 512}) {
    MergeSetup S = deepSeekRows(512, ContextRows);
    S.Kind = [](int64_t T, int64_t) {
      return T % 5 ? RowKind::BothLive : RowKind::SuffixEmptyNaN;
    };
    MergeRun Run(device(), S);
    Run.run();
    ASSERT_TRUE(Run.check()) << "context_rows = " << ContextRows;
  }
}

// vLLM #38359: outputs are uninitialised memory, rows that no attention kernel
// wrote included; whatever they held, every row a reader sees is written.
TEST(Merge, vllm_38359_uninitialised_outputs_need_no_zero_init) {
  MergeSetup S = deepSeekRows(64, 40);
  S.Kind = [](int64_t T, int64_t) {
    return T % 3 == 0   ? RowKind::BothEmpty
           : T % 3 == 1 ? RowKind::PrefixEmptyNaN
                        : RowKind::BothLive;
  };
  for (MergeSetup::Place Where :
       {MergeSetup::Separate, MergeSetup::OverPrefix}) {
    S.Where = Where;
    MergeRun Run(device(), S);
    Run.run();
    ASSERT_TRUE(Run.check());
  }
}
