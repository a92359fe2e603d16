//===- CopyTest.cpp - merge_attn_states_copy ------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Rows at or past the threshold are copies of the suffix, every bit of payload
// and lse: NaN with the bits it had, an lse of +inf and what lies beside it.
// The rows before it are merged as merge_attn_states does.
//
//===----------------------------------------------------------------------===//

#include "MergeRun.h"
#include "Sides.h"

using namespace conformance;

namespace {

class MergeCopy : public testing::TestWithParam<std::tuple<StateCase, bool>> {
protected:
  MergeSetup setup() const {
    const StateCase &Case = std::get<0>(GetParam());
    MergeSetup S;
    S.H = Case.Shape.H;
    S.D = Case.Shape.D;
    S.Type = Case.Type;
    S.LseRowsFirst = std::get<1>(GetParam());
    S.CopiesPast = true;
    return S;
  }
};

constexpr Style Styles[] = {Style::Contiguous, Style::Misaligned, Style::Padded,
                            Style::PaddedOdd, Style::SlicedLse};
constexpr MergeSetup::Place Places[] = {
    MergeSetup::Separate, MergeSetup::OverPrefix, MergeSetup::OverSuffix};

std::vector<StateCase> baseE() {
  std::vector<StateCase> All;
  for (const StateCase &Case : stateCases())
    if (!Case.BaseTwo)
      All.push_back(Case);
  return All;
}

std::string
parameterName(const testing::TestParamInfo<std::tuple<StateCase, bool>> &Info) {
  return caseName({std::get<0>(Info.param), 0}) +
         (std::get<1>(Info.param) ? "_lse_nH" : "_lse_Hn");
}

} // namespace

TEST_P(MergeCopy, every_layout_place_and_threshold) {
  for (Style How : Styles)
    for (MergeSetup::Place Where : Places) // N11
      for (int64_t ContextRows : {0, 1, 20, 41}) {
        MergeSetup S = setup();
        S.How = How;
        S.Where = Where;
        S.N = 41;
        S.ContextRows = ContextRows;
        S.Seed = uint64_t(ContextRows) + 1;
        MergeRun Run(device(), S);
        Run.run();
        ASSERT_TRUE(Run.check())
            << "style " << int(How) << ", place " << int(Where)
            << ", context_rows = " << ContextRows;
      }
}

TEST_P(MergeCopy, without_out_lse_and_without_rows) {
  for (int64_t N : {0, 17}) {
    MergeSetup S = setup();
    S.N = N;
    S.ContextRows = N / 2;
    S.WantLse = false;
    MergeRun Run(device(), S);
    Run.run();
    ASSERT_TRUE(Run.check()) << "n = " << N;
  }
}

INSTANTIATE_TEST_SUITE_P(All, MergeCopy,
                         testing::Combine(testing::ValuesIn(baseE()),
                                          testing::Bool()),
                         parameterName);
