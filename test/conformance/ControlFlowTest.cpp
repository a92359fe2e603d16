//===- ControlFlowTest.cpp - rows through loops and branches --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// test/conformance/kernels/rows_in_control_flow.mlir and
// rows_along_two_dims.mlir against f64.
//
//===----------------------------------------------------------------------===//

#include "Sides.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace conformance;

namespace {

using Row = std::vector<double>;

/// The kernel's work on one pair of rows.
void apply(Row &X, Row &Y, bool P, int64_t K) {
  const Row A = X, B = Y;
  Row C = A, D = B;
  for (int64_t J = 0; J < K; ++J) {
    double Max = *std::max_element(C.begin(), C.end());
    Row W = D, Z = C;
    for (double &Value : W)
      Value *= 0.5;
    for (double &Value : Z)
      Value += Max;
    C = W;
    D = Z;
  }
  double Sum = std::accumulate(C.begin(), C.end(), 0.0);
  for (size_t I = 0; I < A.size(); ++I)
    X[I] = P ? A[I] * Sum + double(K) * B[I] : D[I] - C[I];
  double Min = *std::min_element(X.begin(), X.end());
  for (size_t I = 0; I < A.size(); ++I)
    Y[I] = D[I] + Min;
}

testing::AssertionResult runs(int64_t D, bool P, int64_t K, Spread How) {
  const int64_t N = 5;
  TestTensor X = payloadTensor(Float::F32, {N, D}, How, 0);
  TestTensor Y = payloadTensor(Float::F32, {N, D}, How, 1);
  std::vector<Row> Xs(N, Row(D)), Ys(N, Row(D));
  Random R(uint64_t(D + K));
  for (int64_t T = 0; T < N; ++T)
    for (int64_t I = 0; I < D; ++I) {
      float U = float(R.uniform(-2, 2)), V = float(R.uniform(-2, 2));
      X.setFloat({T, I}, U);
      Y.setFloat({T, I}, V);
      Xs[T][I] = U;
      Ys[T][I] = V;
    }
  launchOn(kernel("rows_in_control_flow", "D=" + std::to_string(D)),
           {X.view(), Y.view(), P, K}, {&X, &Y});
  for (int64_t T = 0; T < N; ++T) {
    apply(Xs[T], Ys[T], P, K);
    struct {
      const TestTensor &Tensor;
      const Row &Want;
    } Both[] = {{X, Xs[T]}, {Y, Ys[T]}};
    for (auto &Each : Both) {
      double Largest = 1;
      for (double Value : Each.Want)
        Largest = std::max(Largest, std::fabs(Value));
      for (int64_t I = 0; I < D; ++I) {
        double Got = toDouble(Float::F32, Each.Tensor.get({T, I}));
        if (!(std::fabs(Got - Each.Want[I]) <= 1e-5 * Largest))
          return testing::AssertionFailure()
                 << (&Each == Both ? "x[" : "y[") << T << ", " << I
                 << "]: expected " << Each.Want[I] << ", got " << Got;
      }
    }
  }
  return nothingElseWritten({}, {&X, &Y});
}

/// Whole numbers of a size that leaves all sums exact.
testing::AssertionResult runsTwoDims(int64_t D, int64_t E, int64_t K) {
  const int64_t N = 3;
  TestTensor X = payloadTensor(Float::F32, {N, D}, Spread::OddGaps, 0);
  TestTensor Y = payloadTensor(Float::F32, {N, E}, Spread::Dense, 1);
  std::vector<Row> Xs(N, Row(D)), Ys(N, Row(E));
  Random R(uint64_t(D + E + K));
  auto Fill = [&](TestTensor &Tensor, std::vector<Row> &Rows) {
    for (int64_t T = 0; T < N; ++T)
      for (size_t I = 0; I < Rows[T].size(); ++I) {
        Rows[T][I] = std::floor(R.uniform(-4, 5));
        Tensor.setFloat({T, int64_t(I)}, float(Rows[T][I]));
      }
  };
  Fill(X, Xs);
  Fill(Y, Ys);
  launchOn(kernel("rows_along_two_dims",
                  "D=" + std::to_string(D) + ",E=" + std::to_string(E)),
           {X.view(), Y.view(), K}, {&X, &Y});
  for (int64_t T = 0; T < N; ++T) {
    for (int64_t J = 0; J < K; ++J) {
      double Max = *std::max_element(Xs[T].begin(), Xs[T].end()),
             Min = *std::min_element(Ys[T].begin(), Ys[T].end());
      for (double &Value : Xs[T])
        Value += Min;
      for (double &Value : Ys[T])
        Value -= Max;
    }
    double Sum = std::accumulate(Xs[T].begin(), Xs[T].end(), 0.0);
    for (double &Value : Ys[T])
      Value += Sum;
    for (auto [Tensor, Want] : {std::pair(&X, &Xs[T]), std::pair(&Y, &Ys[T])})
      for (size_t I = 0; I < Want->size(); ++I)
        if (double Got = toDouble(Float::F32, Tensor->get({T, int64_t(I)}));
            Got != (*Want)[I])
          return testing::AssertionFailure()
                 << (Tensor == &X ? "x[" : "y[") << T << ", " << I
                 << "]: expected " << (*Want)[I] << ", got " << Got;
  }
  return nothingElseWritten({}, {&X, &Y});
}

} // namespace

TEST(ControlFlow, rows_in_loops_and_branches) {
  for (int64_t D : {1, 64, 1000, 4112})
    for (bool P : {false, true})
      for (int64_t K : {0, 1, 2, 3})
        for (Spread How : {Spread::Dense, Spread::OddGaps})
          ASSERT_TRUE(runs(D, P, K, How))
              << "D = " << D << ", p = " << P << ", k = " << K;
}

// More elements than a thread holds at once: a loop over packs on GPUs, too.
TEST(ControlFlow, rows_longer_than_a_thread_holds) {
  for (int64_t D : {65521, 65536})
    for (bool P : {false, true})
      for (int64_t K : {0, 2})
        ASSERT_TRUE(runs(D, P, K, K ? Spread::Dense : Spread::OddGaps))
            << "D = " << D << ", p = " << P << ", k = " << K;
}

TEST(ControlFlow, rows_along_two_dims) {
  const std::pair<int64_t, int64_t> Sizes[] = {
      {33, 2048}, {2048, 33}, {96, 7}, {65521, 4096}, {65536, 5}};
  for (auto [D, E] : Sizes)
    for (int64_t K : {0, 1, 3})
      ASSERT_TRUE(runsTwoDims(D, E, K))
          << "D = " << D << ", E = " << E << ", k = " << K;
}
