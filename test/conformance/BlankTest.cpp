//===- BlankTest.cpp - kernels that blank rows ----------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// fill_pad_rows, mask_empty_context, mask_empty_context_lse: the rows that they
// are for become +0.0 and -inf, and no other byte changes.
//
//===----------------------------------------------------------------------===//

#include "Blank.h"

#include <climits>

using namespace conformance;

namespace {

/// Where the count of live rows comes from.
enum Count { FromHost, FromDevice };

testing::AssertionResult fillsPadRows(const StateCase &Case, int64_t N,
                                      int64_t Live, Spread How, Count From,
                                      bool WantLse = true,
                                      bool RowsFirst = false) {
  BlankRows Rows(Case, N, How, RowsFirst);
  TestTensor OnDevice(device(), MLAFIX_I32, Layout::contiguous({1}));
  OnDevice.setInt({0}, int32_t(Live));
  std::vector<mlafix::Arg> Arguments = {
      Rows.Out.view(), WantLse ? Rows.lseView() : mlafix::Tensor::none()};
  bool IsHeld = From == FromDevice;
  Arguments.push_back(IsHeld ? 0 : Live);
  Arguments.push_back(IsHeld ? OnDevice.view() : mlafix::Tensor::none());
  launchOn(kernel("fill_pad_rows",
                  Case.bindings() + (IsHeld ? ",live_rows_at=present"
                                            : ",live_rows_at=absent")),
           Arguments, {&Rows.Out, &Rows.Lse, &OnDevice});
  return Rows.check([=](int64_t T) { return T >= Live; }, true, WantLse);
}

/// Requests of \p Lengths tokens, of which those with a true flag have context.
struct Requests {
  std::vector<int32_t> Query = {0}, Context = {0};
  std::vector<bool> IsDead; // by token

  Requests(std::vector<int32_t> Lengths, std::vector<int32_t> Contexts) {
    for (size_t I = 0; I < Lengths.size(); ++I) {
      Query.push_back(Query.back() + Lengths[I]);
      Context.push_back(Context.back() + Contexts[I]);
      IsDead.insert(IsDead.end(), size_t(Lengths[I]), Contexts[I] <= 0);
    }
  }
};

testing::AssertionResult masks(const StateCase &Case, bool WithOut,
                               const Requests &All, int64_t N, Spread How,
                               bool RowsFirst = false) {
  BlankRows Rows(Case, N, How, RowsFirst);
  TestTensor Query = intTensor(All.Query), Context = intTensor(All.Context);
  std::vector<mlafix::Arg> Arguments;
  if (WithOut)
    Arguments.push_back(Rows.Out.view());
  Arguments.insert(Arguments.end(),
                   {Rows.lseView(), Query.view(), Context.view()});
  launchOn(WithOut ? kernel("mask_empty_context", Case.bindings())
                   : kernel("mask_empty_context_lse",
                            "H=" + std::to_string(Case.Shape.H)),
           Arguments, {&Rows.Out, &Rows.Lse, &Query, &Context});
  if (testing::AssertionResult Good =
          nothingElseWritten({&Query, &Context}, {});
      !Good)
    return Good;
  return Rows.check(
      [&](int64_t T) {
        return T < int64_t(All.IsDead.size()) && All.IsDead[size_t(T)];
      },
      WithOut, true);
}

class Blank : public testing::TestWithParam<StateCase> {};

} // namespace

TEST_P(Blank, pad_rows_in_every_layout) {
  for (Spread How : AllSpreads)
    for (Count From : {FromHost, FromDevice})
      for (int64_t Live : {0, 1, 8, 9})
        ASSERT_TRUE(fillsPadRows(GetParam(), 9, Live, How, From))
            << "spread " << int(How) << ", live_rows " << Live;
  ASSERT_TRUE(fillsPadRows(GetParam(), 9, 3, Spread::Gaps, FromHost, false));
  for (Spread How : AllSpreads)
    for (Count From : {FromHost, FromDevice})
      ASSERT_TRUE(fillsPadRows(GetParam(), 9, 4, How, From, true, true));
  ASSERT_TRUE(fillsPadRows(GetParam(), 0, 0, Spread::Dense, FromHost));
}

TEST_P(Blank, requests_without_context_in_every_layout) {
  Requests Mixed({3, 0, 2, 4, 1}, {0, 5, 7, 0, -2});
  for (Spread How : AllSpreads)
    for (bool WithOut : {false, true}) {
      ASSERT_TRUE(masks(GetParam(), WithOut, Mixed, 12, How))
          << "spread " << int(How);
      ASSERT_TRUE(masks(GetParam(), WithOut, Mixed, 12, How, true))
          << "lse as [n, H], spread " << int(How);
      ASSERT_TRUE(masks(GetParam(), WithOut, Requests({}, {}), 3, How));
      ASSERT_TRUE(masks(GetParam(), WithOut, Requests({2, 2}, {1, 1}), 4, How));
    }
}

INSTANTIATE_TEST_SUITE_P(All, Blank, testing::ValuesIn(stateCases()), caseName);

namespace {
const StateCase Small{{6, 3}, Float::BF16, false};
}

TEST(FillPadRows, a_device_count_of_any_value_stays_in_bounds) {
  EXPECT_TRUE(fillsPadRows(Small, 5, -1, Spread::Dense, FromDevice));
  EXPECT_TRUE(fillsPadRows(Small, 5, INT_MIN, Spread::Dense, FromDevice));
  EXPECT_TRUE(fillsPadRows(Small, 5, 6, Spread::Dense, FromDevice));
  EXPECT_TRUE(fillsPadRows(Small, 5, INT_MAX, Spread::Dense, FromDevice));
}

TEST(FillPadRows, a_host_count_outside_of_the_rows_is_an_error) {
  EXPECT_THROW(fillsPadRows(Small, 5, 6, Spread::Dense, FromHost),
               mlafix::Error);
  EXPECT_THROW(fillsPadRows(Small, 5, -1, Spread::Dense, FromHost),
               mlafix::Error);
}

// vLLM #38359: instead of zeroing whole buffers, a kernel writes the rows that
// pad the batch of a captured graph, 5 live ones of 8 and 1 of 1024.
TEST(FillPadRows, vllm_38359_only_pad_rows_are_written) {
  StateCase Case{{16, 128}, Float::BF16, false};
  for (Count From : {FromHost, FromDevice}) {
    EXPECT_TRUE(fillsPadRows(Case, 8, 5, Spread::Dense, From));
    EXPECT_TRUE(fillsPadRows(Case, 1024, 1, Spread::Dense, From));
  }
}

TEST(MaskEmptyContext, malformed_bounds_stay_inside) {
  for (bool WithOut : {false, true}) {
    Requests All({}, {});
    All.Context = {0, 0, 0, 0};
    All.Query = {-5, 3, 2, 99}; // no segment is sound
    EXPECT_TRUE(masks(Small, WithOut, All, 8, Spread::Dense));
    All.Query = {INT_MIN, INT_MAX, 0, 1}; // the last one is
    All.IsDead = {true};
    EXPECT_TRUE(masks(Small, WithOut, All, 8, Spread::Dense));
    // Bounds of the context that wrap around are no context of their own.
    All.Query = {0, 2, 4, 6};
    All.Context = {INT_MAX, INT_MIN, 0, 1};
    All.IsDead = {true, true, false, false, false, false};
    EXPECT_TRUE(masks(Small, WithOut, All, 8, Spread::Dense));
  }
}
