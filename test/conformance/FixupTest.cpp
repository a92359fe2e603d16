//===- FixupTest.cpp - rows of sequences without KV -----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Tests fixup_zero_kv_rows: it must blank the rows of segments without keys,
// keep all other rows bit for bit, and stay within the tensors if the bounds of
// segments are malformed.
//
//===----------------------------------------------------------------------===//

#include "FixupRun.h"

#include <climits>
#include <numeric>

using namespace conformance;

namespace {

class FixupTable : public HeadTable<FixupSetup> {};

/// Returns the setup of a call with N rows of 16 x 128 bf16 in the given
/// segments.
FixupSetup segments(std::vector<int32_t> KvLens, std::vector<int32_t> Cu,
                    int64_t N) {
  FixupSetup S;
  S.N = N;
  S.H = 16;
  S.D = 128;
  S.Type = Float::BF16;
  S.KvLens = std::move(KvLens);
  S.CuSeqlens = std::move(Cu);
  return S;
}

testing::AssertionResult fixes(FixupSetup Setup) {
  for (Style How : {Style::Contiguous, Style::Misaligned}) {
    Setup.How = How;
    FixupRun Run(device(), Setup);
    Run.run();
    if (testing::AssertionResult Good = Run.check(); !Good)
      return Good << ", style " << int(How);
  }
  return testing::AssertionSuccess();
}

} // namespace

TEST_P(FixupTable, every_layout_and_mix_of_segments) {
  std::vector<int32_t> Lengths = {3, 0, 1, 7, 5, 1, 9};
  std::vector<int32_t> Mixed = {0, 0, 5, -1, 2, 0, INT_MAX};
  std::vector<int32_t> AllDead(7, 0), NoneDead(7, 1);
  for (Style How : {Style::Contiguous, Style::Misaligned, Style::Padded,
                    Style::PaddedOdd, Style::SlicedLse})
    for (const std::vector<int32_t> &KvLens : {Mixed, AllDead, NoneDead}) {
      FixupSetup S = setup();
      S.How = How;
      S.KvLens = KvLens;
      S.CuSeqlens = prefixSums(Lengths);
      // The last two rows belong to no segment.
      S.N = S.CuSeqlens.back() + 2;
      FixupRun Run(device(), S);
      Run.run();
      ASSERT_TRUE(Run.check()) << "style " << int(How);
      // A second call blanks the same rows again, and changes nothing.
      Run.run();
      ASSERT_TRUE(Run.check()) << "second run, style " << int(How);
    }
}

INSTANTIATE_TEST_SUITE_P(All, FixupTable,
                         testing::Combine(testing::ValuesIn(headCases()),
                                          testing::Bool()),
                         headCaseName);

TEST(Fixup, no_rows_or_no_segments_do_nothing) {
  EXPECT_TRUE(fixes(segments({}, {0}, 4)));
  EXPECT_TRUE(fixes(segments({}, {}, 4)));
  EXPECT_TRUE(fixes(segments({0, 0}, {0, 0, 0}, 0)));
  EXPECT_TRUE(fixes(segments({}, {}, 0)));
}

// Malformed bounds of segments cause no access outside the tensors.
TEST(Fixup, malformed_cu_seqlens_stay_in_bounds) {
  // A segment is ignored if its bounds are negative, decreasing or past N.
  EXPECT_TRUE(fixes(segments({0, 0, 0}, {-5, 3, 2, 8}, 8)));
  EXPECT_TRUE(fixes(segments({0, 0, 0}, {0, INT_MAX, INT_MIN, 4}, 8)));
  EXPECT_TRUE(fixes(segments({0, 0}, {0, 4, 9}, 8)));
  EXPECT_TRUE(fixes(segments({0, 0}, {8, 4, 8}, 8)));
  EXPECT_TRUE(
      fixes(segments({0, 0, 0, 0}, {INT_MIN, INT_MIN, 0, 8, INT_MAX}, 8)));
  Random R(3);
  for (int Trial = 0; Trial < 50; ++Trial) {
    std::vector<int32_t> Lens(37), Cu(38);
    for (int32_t &Len : Lens)
      Len = int32_t(R.below(3)) - 1;
    for (int32_t &Bound : Cu)
      Bound = R.below(4) ? int32_t(R.below(70)) - 3 : int32_t(R.next());
    ASSERT_TRUE(fixes(segments(Lens, Cu, 64))) << "trial " << Trial;
  }
}

TEST(Fixup, counts_of_segments_and_bounds_that_disagree_stay_in_bounds) {
  // If the number of bounds does not fit the number of segments, only segments
  // with both bounds count.
  EXPECT_TRUE(fixes(segments({0, 0, 0, 0}, {0, 2, 4}, 8)));
  EXPECT_TRUE(fixes(segments({0}, {0, 2, 4, 6, 8}, 8)));
  EXPECT_TRUE(fixes(segments({0, 0}, {}, 8)));
  EXPECT_TRUE(fixes(segments({0, 0}, {0}, 8)));
}
