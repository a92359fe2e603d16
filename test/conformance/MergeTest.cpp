//===- MergeTest.cpp - merges of two states -------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Tests merges for a table of shapes, dtypes, layouts and thresholds, with all
// kinds of rows mixed (N1-N7, N10, N12). Also tests the runtime's checks of a
// call.
//
//===----------------------------------------------------------------------===//

#include "MergeRun.h"

using namespace conformance;

namespace {

class MergeTable : public HeadTable<MergeSetup> {};

constexpr Style Styles[] = {Style::Contiguous, Style::Misaligned, Style::Padded,
                            Style::PaddedOdd, Style::SlicedLse};

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

TEST_P(MergeTable, every_layout_threshold_and_row_kind) {
  for (Style How : Styles)
    for (int64_t N : {0, 1, 2, 67}) {
      std::vector<int64_t> Thresholds = {N};
      if (N > 0)
        Thresholds = {0, 1, N - 1, N};
      for (int64_t ContextRows : Thresholds) {
        // If N > 2, only contiguous tensors are tested with all thresholds.
        // Other styles are tested with one.
        if (How != Style::Contiguous && ContextRows != N - 1 && N > 2)
          continue;
        MergeSetup S = setup();
        S.How = How;
        S.N = N;
        S.ContextRows = ContextRows;
        S.Seed = hash(N * 31 + ContextRows);
        MergeRun Run(device(), S);
        Run.run();
        ASSERT_TRUE(Run.check()) << "style " << int(How) << ", n = " << N
                                 << ", context_rows = " << ContextRows;
      }
    }
}

TEST_P(MergeTable, without_out_lse) {
  MergeSetup S = setup();
  S.N = 17;
  S.ContextRows = 11;
  S.WantLse = false;
  MergeRun Run(device(), S);
  Run.run();
  ASSERT_TRUE(Run.check());
}

TEST_P(MergeTable, in_place_over_prefix_and_over_suffix) { // N11
  for (Style How : Styles)
    for (MergeSetup::Place Where :
         {MergeSetup::OverPrefix, MergeSetup::OverSuffix}) {
      MergeSetup S = setup();
      S.How = How;
      S.N = 37;
      S.ContextRows = S.N - 1;
      S.Where = Where;
      MergeRun Run(device(), S);
      Run.run();
      ASSERT_TRUE(Run.check()) << "style " << int(How) << ", place " << Where;
    }
}

INSTANTIATE_TEST_SUITE_P(All, MergeTable,
                         testing::Combine(testing::ValuesIn(headCases()),
                                          testing::Bool()),
                         headCaseName);

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
  // The output is rows [0, 7) of a buffer, and the suffix is rows [1, 8).
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

// For a call in place with tensors of at least 16 MB, the GPU code first reads
// the lse of the overwritten state. It does not read the row if the lse is
// infinite.
TEST(Merge, large_calls_in_place_hold_every_kind_of_row) { // N11
  MLAFIX_NEEDS_CUDA();
  MergeSetup S = deepSeekRows(4200, 3000);
  S.Where = MergeSetup::OverSuffix;
  for (Style How : {Style::Contiguous, Style::Padded, Style::Misaligned}) {
    S.How = How;
    MergeRun Run(device(), S);
    Run.run();
    ASSERT_TRUE(Run.check()) << "style " << int(How);
  }
}
