//===- StatsTest.cpp - merge_attn_stats -----------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// States as softmax statistics, (unscaled max, sum), against f64.
//
//===----------------------------------------------------------------------===//

#include "Sides.h"

#include <cmath>
#include <cstring>

using namespace conformance;

namespace {

struct Stats {
  float Max, Sum;
  bool isEmpty() const { return std::isinf(Max) || Sum == 0; }
};

/// Two sides a row. What is empty says so by its maximum or by its sum.
Stats statsOf(int64_t Row, int Side) {
  Random R(hash(Row * 2 + Side));
  Stats Live{float(R.uniform(-30, 30)), float(R.uniform(0.5, 2000))};
  int Kind = int(hash(Row) % 10);
  bool IsFirst = Side == 0;
  switch (Kind) {
  case 0: // the prefix is empty
    return IsFirst ? Stats{-INFINITY, NAN} : Live;
  case 1:
    return IsFirst ? Live : Stats{INFINITY, 7};
  case 2: // no sum, however large the maximum
    return IsFirst ? Stats{1e30f, 0} : Live;
  case 3:
    return IsFirst ? Live : Stats{12, 0};
  case 4: // both
    return IsFirst ? Stats{-INFINITY, 0} : Stats{3, 0};
  case 5: // far apart: the weight underflows
    return IsFirst ? Stats{-1e5f, 3} : Live;
  case 6: // close together and far from zero
    return {float(1e5 + R.uniform(-3, 3)), Live.Sum};
  case 7:
    return IsFirst ? Stats{NAN, 1} : Live;
  default:
    return Live;
  }
}

/// Garbage where nobody may look.
bool holdsGarbage(int64_t Row, int Side) {
  return statsOf(Row, Side).isEmpty() || (hash(Row) % 10 == 5 && Side == 0);
}

testing::AssertionResult mergesStats(const StateCase &Case, int64_t N,
                                     float Scale, Spread How, bool WantStats,
                                     int Over = -1) {
  auto [H, D] = Case.Shape;
  TestTensor Payload[2] = {payloadTensor(Case.Type, {N, H, D}, How, 0),
                           payloadTensor(Case.Type, {N, H, D}, How, 1)};
  TestTensor In[2] = {lseTensor({N, H, 2}, How, 0),
                      lseTensor({N, H, 2}, How, 1)};
  TestTensor Out = payloadTensor(Case.Type, {N, H, D}, How, 2);
  TestTensor OutStats = lseTensor({N, H, 2}, How, 2);
  std::vector<uint32_t> Bits(2 * N * H * D);
  for (int64_t Row = 0; Row < N * H; ++Row)
    for (int Side = 0; Side < 2; ++Side) {
      Stats S = statsOf(Row, Side);
      In[Side].setFloat({Row / H, Row % H, 0}, S.Max);
      In[Side].setFloat({Row / H, Row % H, 1}, S.Sum);
      uint32_t *Mine = &Bits[(Row * 2 + Side) * D];
      Random R(hash(Row) + Side);
      for (int64_t I = 0; I < D; ++I)
        Mine[I] = holdsGarbage(Row, Side)
                      ? fromDouble(Case.Type, I % 2 ? NAN : INFINITY)
                      : fromDouble(Case.Type, R.uniform(-4, 4));
      setRow(Payload[Side], Mine, D, Row / H, Row % H);
    }
  // The payload may go over either side's (N11).
  TestTensor &To = Over < 0 ? Out : Payload[Over];
  launchOn(kernel("merge_attn_stats", Case.bindings()),
           {To.view(), WantStats ? OutStats.view() : mlafix::Tensor::none(),
            Payload[0].view(), In[0].view(), Payload[1].view(), In[1].view(),
            Scale},
           {&Payload[0], &Payload[1], &In[0], &In[1], &Out, &OutStats});

  for (int64_t Row = 0; Row < N * H; ++Row) {
    Stats A = statsOf(Row, 0), B = statsOf(Row, 1);
    // The reference merges log-sum-exps relative to the common maximum, so that
    // f32 does not round them.
    double Max = std::max(A.isEmpty() ? -INFINITY : double(A.Max),
                          B.isEmpty() ? -INFINITY : double(B.Max));
    bool Faulty = std::isnan(A.Max) || (!B.isEmpty() && std::isnan(B.Max));
    double Sum = 0;
    std::vector<Side> All;
    for (int Side = 0; Side < 2; ++Side) {
      Stats S = Side ? B : A;
      double Below = (double(S.Max) - Max) * Scale;
      if (!S.isEmpty())
        Sum += S.Sum * std::exp(Below);
      All.push_back(
          {&Bits[(Row * 2 + Side) * D],
           S.isEmpty() ? -INFINITY : float(Below + std::log(double(S.Sum)))});
    }
    ExpectedRow Want = mergeReference(Case.Type, D, All, {Case.Type});
    int64_t T = Row / H, I = Row % H;
    if (testing::AssertionResult Good =
            rowMatches(Want, Case.Type, To, nullptr, T, I);
        !Good)
      return Good << " (row " << Row << ", kind " << hash(Row) % 10 << ")";
    if (!WantStats)
      continue;
    float Got[2];
    for (int64_t J = 0; J < 2; ++J) {
      uint32_t Raw = OutStats.get({T, I, J});
      if (Raw == poisonBits(Float::F32))
        return testing::AssertionFailure() << "out_stats is poison still";
      std::memcpy(&Got[J], &Raw, 4);
    }
    bool Same =
        Faulty ? std::isnan(Got[0]) && std::isnan(Got[1])
               : double(Got[0]) == Max && std::fabs(Got[1] - Sum) <= 4e-6 * Sum;
    if (!Same)
      return testing::AssertionFailure()
             << "row " << Row << ", kind " << hash(Row) % 10
             << ": expected stats (" << Max << ", " << Sum << "), got ("
             << Got[0] << ", " << Got[1] << ")";
  }
  std::vector<const TestTensor *> Inputs = {&In[0], &In[1]};
  for (int Side = 0; Side < 2; ++Side)
    if (Side != Over)
      Inputs.push_back(&Payload[Side]);
  return nothingElseWritten(Inputs, {&To, &OutStats});
}

class MergeStats : public testing::TestWithParam<StateCase> {};

std::vector<StateCase> casesInBaseE() {
  std::vector<StateCase> All;
  for (const StateCase &Case : stateCases())
    if (!Case.BaseTwo)
      All.push_back(Case);
  return All;
}

} // namespace

TEST_P(MergeStats, every_layout_scale_and_kind_of_row) {
  for (Spread How : AllSpreads)
    for (float Scale : {1.0f, 0.0883883f})
      ASSERT_TRUE(mergesStats(GetParam(), 31, Scale, How, true))
          << "spread " << int(How) << ", scale " << Scale;
  for (Spread How : AllSpreads)
    for (int Over : {0, 1})
      ASSERT_TRUE(mergesStats(GetParam(), 31, 0.5f, How, true, Over))
          << "spread " << int(How) << ", over side " << Over;
  ASSERT_TRUE(mergesStats(GetParam(), 9, 1.0f, Spread::Dense, false));
  ASSERT_TRUE(mergesStats(GetParam(), 0, 1.0f, Spread::Dense, true));
}

INSTANTIATE_TEST_SUITE_P(All, MergeStats, testing::ValuesIn(casesInBaseE()),
                         caseName);
