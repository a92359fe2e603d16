//===- ControlFlowTest.cpp - rows through loops and branches --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// test/conformance/kernels/rows_in_control_flow.mlir against f64.
//
//===----------------------------------------------------------------------===//

#include "Sides.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace conformance;

namespace {

using Row = std::vector<double>;

/// What the kernel does to one pair of rows.
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

} // namespace

TEST(ControlFlow, rows_in_loops_and_branches) {
  for (int64_t D : {1, 64, 1000, 4112})
    for (bool P : {false, true})
      for (int64_t K : {0, 1, 2, 3})
        for (Spread How : {Spread::Dense, Spread::OddGaps})
          ASSERT_TRUE(runs(D, P, K, How))
              << "D = " << D << ", p = " << P << ", k = " << K;
}
