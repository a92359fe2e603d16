//===- RowKernelTest.cpp - row kernels beyond states ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Compares RMSNorm and softmax (kernels/examples) with f64. The kernels test
// loads, row reductions, arithmetic and stores. The rows are shorter than a
// pack (3 elements), are held in registers (576), or are long (7168).
//
//===----------------------------------------------------------------------===//

#include "Harness.h"
#include "Reference.h"
#include "TestTensor.h"

#include <algorithm>
#include <cmath>

using namespace conformance;

namespace {

struct RowRun {
  std::vector<std::vector<uint32_t>> Rows; // [n][D] bits of y
  testing::AssertionResult Good = testing::AssertionSuccess();
};

/// The layout of x and y in memory.
enum Place { Aligned, Misaligned, Gaps, InPlace };

Layout rowLayout(int64_t N, int64_t D, Place Where, int Operand) {
  Layout L = Layout::contiguous({N, D});
  if (Where == Misaligned)
    L.Offset = 1;
  if (Where == Gaps)
    L.Strides = {D + 3 + Operand, 1};
  return L;
}

uint32_t input(Float Type, int64_t Row, int64_t I) {
  Random R(hash(Row * 8191 + I));
  return fromDouble(Type, R.uniform(-4, 4));
}

uint32_t weight(Float Type, int64_t I) {
  Random R(hash(I) + 7);
  return fromDouble(Type, R.uniform(0.5, 2));
}

constexpr float Epsilon = 1e-5f, Scale = 0.7f;

std::vector<double> reference(const std::string &Name, Float Type, int64_t Row,
                              int64_t D) {
  std::vector<double> X(D), Y(D);
  for (int64_t I = 0; I < D; ++I)
    X[I] = toDouble(Type, input(Type, Row, I));
  double Sum = 0;
  if (Name == "rmsnorm") {
    for (double Value : X)
      Sum += Value * Value;
    double Inverse = 1 / std::sqrt(Sum / double(D) + double(Epsilon));
    for (int64_t I = 0; I < D; ++I)
      Y[I] = X[I] * Inverse * toDouble(Type, weight(Type, I));
    return Y;
  }
  double Max = *std::max_element(X.begin(), X.end());
  for (int64_t I = 0; I < D; ++I)
    Sum += Y[I] = std::exp(double(Scale) * (X[I] - Max));
  for (double &Value : Y)
    Value /= Sum;
  return Y;
}

/// Runs a kernel on rows [First, First + N) of the test inputs.
RowRun runRows(const std::string &Name, Float Type, int64_t D, int64_t First,
               int64_t N, Place Where) {
  Device &On = device();
  TestTensor X(On, dtypeOf(Type), rowLayout(N, D, Where, 0));
  TestTensor Y(On, dtypeOf(Type), rowLayout(N, D, Where, 1));
  TestTensor W(On, dtypeOf(Type), Layout::contiguous({D}));
  for (int64_t I = 0; I < D; ++I)
    W.set({I}, weight(Type, I));
  for (int64_t T = 0; T < N; ++T)
    for (int64_t I = 0; I < D; ++I)
      X.set({T, I}, input(Type, First + T, I));
  for (TestTensor *Tensor : {&X, &Y, &W})
    Tensor->upload();
  TestTensor &Out = Where == InPlace ? X : Y;
  mlafix::Kernel Code = kernel(Name, "D=" + std::to_string(D) +
                                         ",T=" + std::string(spelling(Type)));
  if (Name == "rmsnorm")
    Code.launch({Out.view(), X.view(), W.view(), Epsilon}, On.handle(),
                On.stream(), LaunchFlags);
  else
    Code.launch({Out.view(), X.view(), Scale}, On.handle(), On.stream(),
                LaunchFlags);
  On.synchronize();
  Out.download();

  RowRun Result;
  for (int64_t T = 0; T < N; ++T) {
    std::vector<double> Values = reference(Name, Type, First + T, D);
    Result.Rows.emplace_back();
    for (int64_t I = 0; I < D; ++I) {
      uint32_t Bits = Out.get({T, I});
      Result.Rows.back().push_back(Bits);
      Expected E;
      E.How = Expected::Near;
      E.Value = Values[I];
      E.Magnitude = std::fabs(Values[I]);
      std::string Why;
      if (Result.Good && !matches(Type, E, Bits, Why))
        Result.Good = testing::AssertionFailure()
                      << "row " << First + T << ", element " << I << ": "
                      << Why;
    }
  }
  std::string Why = Out.guardsIntact();
  if (Result.Good && !Why.empty())
    Result.Good = testing::AssertionFailure() << "beside the rows: " << Why;
  return Result;
}

using Parameters = std::tuple<const char *, int64_t, Float>;
class RowKernel : public testing::TestWithParam<Parameters> {};

} // namespace

TEST_P(RowKernel, agrees_with_f64_and_repeats_in_any_layout) {
  auto [Name, D, Type] = GetParam();
  const int64_t N = 11;
  RowRun Whole = runRows(Name, Type, D, 0, N, Aligned);
  ASSERT_TRUE(Whole.Good);
  for (Place Where : {Misaligned, Gaps, InPlace}) {
    RowRun Other = runRows(Name, Type, D, 0, N, Where);
    ASSERT_TRUE(Other.Good) << "place " << Where;
    // The order of reduction is the same for any layout and access width (N9).
    ASSERT_EQ(Whole.Rows, Other.Rows) << "place " << Where;
  }
  RowRun One = runRows(Name, Type, D, 5, 1, Aligned);
  ASSERT_EQ(Whole.Rows[5], One.Rows[0]) << "alone";
}

INSTANTIATE_TEST_SUITE_P(
    All, RowKernel,
    testing::Combine(testing::Values("rmsnorm", "softmax"),
                     testing::Values(int64_t(3), int64_t(576), int64_t(7168)),
                     testing::Values(Float::BF16, Float::F16, Float::F32)),
    [](const testing::TestParamInfo<Parameters> &Info) {
      return std::string(std::get<0>(Info.param)) + "_D" +
             std::to_string(std::get<1>(Info.param)) + "_" +
             spelling(std::get<2>(Info.param));
    });
