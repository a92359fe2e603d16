//===- MergeTableTest.cpp - merge: shapes x dtypes x layouts x edges ------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The whole table: every case of HeadShapes.def x both lse layouts x every
// style of strides and alignment x N x threshold, each with all kinds of rows
// mixed (N1-N7, N10, N12).
//
//===----------------------------------------------------------------------===//

#include "MergeRun.h"

using namespace conformance;

namespace {

using Parameters = std::tuple<HeadCase, bool>;

class MergeTable : public testing::TestWithParam<Parameters> {
protected:
  MergeSetup setup() const {
    MergeSetup S;
    const auto &[Case, LseRowsFirst] = GetParam();
    S.H = Case.Shape.H;
    S.D = Case.Shape.D;
    S.Type = Case.Type;
    S.LseRowsFirst = LseRowsFirst;
    return S;
  }

  /// Token counts: none, one, a prime, and one that fills many blocks; fewer
  /// where a row is large.
  std::vector<int64_t> tokenCounts() const {
    MergeSetup S = setup();
    if (S.H * S.D > 4096)
      return {0, 1, 5};
    return {0, 1, 2, 13, S.H * S.D > 64 ? 67 : 331};
  }
};

std::string parameterName(const testing::TestParamInfo<Parameters> &Info) {
  const auto &[Case, LseRowsFirst] = Info.param;
  return "H" + std::to_string(Case.Shape.H) + "_D" +
         std::to_string(Case.Shape.D) + "_" + spelling(Case.Type) +
         (LseRowsFirst ? "_lse_nH" : "_lse_Hn");
}

constexpr Style Styles[] = {Style::Contiguous, Style::Misaligned, Style::Padded,
                            Style::PaddedOdd, Style::SlicedLse};

} // namespace

TEST_P(MergeTable, every_layout_threshold_and_row_kind) {
  for (Style How : Styles)
    for (int64_t N : tokenCounts()) {
      std::vector<int64_t> Thresholds = {N};
      if (N > 0)
        Thresholds = {0, 1, N - 1, N};
      for (int64_t ContextRows : Thresholds) {
        // All thresholds in the first style, one in the others.
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
  for (Style How : {Style::Contiguous, Style::PaddedOdd}) {
    MergeSetup S = setup();
    S.How = How;
    S.N = 17;
    S.ContextRows = 11;
    S.WantLse = false;
    MergeRun Run(device(), S);
    Run.run();
    ASSERT_TRUE(Run.check()) << "style " << int(How);
  }
}

TEST_P(MergeTable, in_place_over_prefix_and_over_suffix) { // N11
  for (Style How : Styles)
    for (MergeSetup::Place Where :
         {MergeSetup::OverPrefix, MergeSetup::OverSuffix}) {
      MergeSetup S = setup();
      S.How = How;
      S.N = S.H == 128 ? 5 : 37;
      S.ContextRows = S.N - 1;
      S.Where = Where;
      MergeRun Run(device(), S);
      Run.run();
      ASSERT_TRUE(Run.check()) << "style " << int(How) << ", place " << Where;
    }
}

TEST_P(MergeTable, a_rows_bits_depend_on_that_row_alone) { // N9
  // Row t of 61, of a run of its own, in other strides and alignments, with
  // and without aliasing: always the same bits.
  if (setup().H == 128)
    GTEST_SKIP() << "the same code as for fewer heads, and eight times as long";
  MergeSetup Whole = setup();
  Whole.N = Whole.ContextRows = 61;
  MergeRun Reference(device(), Whole);
  Reference.run();
  MergeRun Again(device(), Whole);
  Again.run();
  for (int64_t T = 0; T < Whole.N; ++T)
    for (int64_t H = 0; H < Whole.H; ++H)
      ASSERT_EQ(Reference.rowBits(T, H), Again.rowBits(T, H)) << "repeat";
  struct {
    int64_t First, Count;
    Style How;
    MergeSetup::Place Where;
  } Parts[] = {{0, 1, Style::Contiguous, MergeSetup::Separate},
               {17, 1, Style::Misaligned, MergeSetup::Separate},
               {3, 40, Style::PaddedOdd, MergeSetup::OverPrefix},
               {20, 41, Style::Padded, MergeSetup::OverSuffix},
               {60, 1, Style::SlicedLse, MergeSetup::OverPrefix}};
  for (const auto &Part : Parts) {
    MergeSetup S = Whole;
    S.FirstRow = Part.First;
    S.N = S.ContextRows = Part.Count;
    S.How = Part.How;
    S.Where = Part.Where;
    MergeRun Run(device(), S);
    Run.run();
    for (int64_t T = 0; T < S.N; ++T)
      for (int64_t H = 0; H < S.H; ++H)
        ASSERT_EQ(Reference.rowBits(Part.First + T, H), Run.rowBits(T, H))
            << "token " << Part.First + T << ", head " << H << ", style "
            << int(Part.How);
  }
}

INSTANTIATE_TEST_SUITE_P(All, MergeTable,
                         testing::Combine(testing::ValuesIn(headCases()),
                                          testing::Bool()),
                         parameterName);
