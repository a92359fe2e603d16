//===- VocabularyTest.cpp - rows longer than a lane keeps -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// test/conformance/kernels/rows_of_a_vocabulary.mlir against f64.
//
//===----------------------------------------------------------------------===//

#include "Sides.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace conformance;

namespace {

/// The f32 of a row of `Tensor`, widened.
std::vector<double> row(const TestTensor &Tensor, int64_t T, int64_t V) {
  std::vector<double> Values(V);
  for (int64_t I = 0; I < V; ++I)
    Values[I] = toDouble(Float::F32, Tensor.get({T, I}));
  return Values;
}

testing::AssertionResult near(const char *What, double Got, double Want,
                              double Bound) {
  if (std::fabs(Got - Want) <= Bound)
    return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << What << ": expected " << Want << " +- " << Bound << ", got " << Got;
}

/// Of one row of logits: N10's bound of an exponential, and a rounding for each
/// bit of an element's index.
testing::AssertionResult checkRow(const std::vector<double> &X,
                                  const std::vector<double> &Y,
                                  const std::vector<double> &Sums, double Lse,
                                  int64_t Best) {
  double Max = *std::max_element(X.begin(), X.end()), Sum = 0, Running = 0;
  for (double Value : X)
    Sum += std::exp(Value - Max);
  for (size_t I = 0; I < X.size(); ++I) {
    double Want = std::exp(X[I] - Max) / Sum;
    if (auto Good = near("y", Y[I], Want, 2e-5 * Want); !Good)
      return Good << " at " << I;
    Running += Y[I];
    if (auto Good = near("sums", Sums[I], Running, 2e-6 * Running); !Good)
      return Good << " at " << I;
    if (I > 0 && Sums[I] < Sums[I - 1])
      return testing::AssertionFailure() << "sums falls at " << I;
  }
  if (auto Good = near("lse", Lse, Max + std::log(Sum), 1e-5); !Good)
    return Good;
  if (Best != std::max_element(X.begin(), X.end()) - X.begin())
    return testing::AssertionFailure() << "best: got " << Best;
  return testing::AssertionSuccess();
}

/// The bits of y and sums are those that `Before` holds, if it holds any (N9).
testing::AssertionResult runs(Float Type, int64_t V, Spread How,
                              std::vector<double> &Before) {
  const int64_t N = 2;
  TestTensor X = payloadTensor(Type, {N, V}, How, 0);
  TestTensor Y = payloadTensor(Float::F32, {N, V}, How, 1);
  TestTensor Sums = payloadTensor(Float::F32, {N, V}, How, 2);
  TestTensor Lse = lseTensor({N}, How, 3);
  TestTensor Best(device(), MLAFIX_I32, Layout::contiguous({N}));
  Random R{uint64_t(V)};
  for (int64_t T = 0; T < N; ++T)
    for (int64_t I = 0; I < V; ++I)
      X.set({T, I}, fromDouble(Type, R.uniform(-8, 8)));
  launchOn(kernel("rows_of_a_vocabulary",
                  "V=" + std::to_string(V) + ",T=" + spelling(Type)),
           {Y.view(), Sums.view(), Lse.view(), Best.view(), X.view()},
           {&X, &Y, &Sums, &Lse, &Best});
  std::vector<double> All;
  for (int64_t T = 0; T < N; ++T) {
    std::vector<double> Xs(V), Ys = row(Y, T, V), Running = row(Sums, T, V);
    for (int64_t I = 0; I < V; ++I)
      Xs[I] = toDouble(Type, X.get({T, I}));
    if (auto Good = checkRow(Xs, Ys, Running,
                             toDouble(Float::F32, Lse.get({T})), Best.get({T}));
        !Good)
      return Good << ", row " << T;
    All.insert(All.end(), Ys.begin(), Ys.end());
    All.insert(All.end(), Running.begin(), Running.end());
  }
  if (!Before.empty() && Before != All)
    return testing::AssertionFailure() << "expected the bits of other layouts";
  Before = All;
  return nothingElseWritten({&X}, {&Y, &Sums, &Lse, &Best});
}

} // namespace

TEST(Vocabulary, agrees_with_f64_and_repeats_in_any_layout) {
  for (Float Type : {Float::F32, Float::BF16})
    for (int64_t V : {1, 1000, 4112, 128256, 262145}) {
      std::vector<double> Before;
      for (Spread How : AllSpreads)
        ASSERT_TRUE(runs(Type, V, How, Before))
            << spelling(Type) << ", V = " << V << ", spread " << int(How);
    }
}
