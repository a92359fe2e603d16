//===- Fp8Test.cpp - stores to fp8 e4m3fn ---------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// N7: round to nearest even, saturating at +-448, NaN stays NaN; value *
// (1 / scale) with the reciprocal in f32. quantize_fp8_static and
// merge_attn_states_fp8.
//
//===----------------------------------------------------------------------===//

#include "Sides.h"

#include <cmath>
#include <cstring>

using namespace conformance;

namespace {

constexpr Float Fp8 = Float::F8E4M3FN;

float neighbour(float Value, float Towards) {
  return std::nextafterf(Value, Towards);
}

/// Every number of fp8, every tie between two of them, and the f32 numbers next
/// to these, in both signs; what lies beyond; what is no number.
std::vector<float> boundaries() {
  std::vector<float> All = {INFINITY, NAN,    449.0f, 464.0f,   480.0f,  1e30f,
                            3.4e38f,  1e-45f, 1e-38f, 0x1p-10f, 0x1p-11f};
  for (uint32_t Code = 0; Code < 0x7f; ++Code) {
    float Value = float(toDouble(Fp8, Code));
    float Next = Code < 0x7e ? float(toDouble(Fp8, Code + 1)) : 480.0f;
    float Tie = (Value + Next) / 2; // exact: one more bit
    for (float Middle : {Value, Tie})
      for (float Number :
           {Middle, neighbour(Middle, 0), neighbour(Middle, INFINITY)})
        All.push_back(Number);
  }
  for (size_t I = 0, N = All.size(); I < N; ++I)
    All.push_back(-All[I]);
  return All;
}

testing::AssertionResult quantizes(Float Type, int64_t D,
                                   const std::vector<uint32_t> &Values,
                                   float Scale, Spread How) {
  int64_t N = (int64_t(Values.size()) + D - 1) / D;
  TestTensor X = payloadTensor(Type, {N, D}, How, 0);
  TestTensor Out = payloadTensor(Fp8, {N, D}, How, 1);
  TestTensor ScaleTensor = lseTensor({1}, Spread::Dense, 0);
  ScaleTensor.setFloat({0}, Scale);
  auto At = [&](int64_t I) { return Values[size_t(I) % Values.size()]; };
  for (int64_t I = 0; I < N * D; ++I)
    X.set({I / D, I % D}, At(I));
  launchOn(kernel("quantize_fp8_static",
                  "D=" + std::to_string(D) + ",T=" + spelling(Type)),
           {Out.view(), X.view(), ScaleTensor.view()},
           {&X, &Out, &ScaleTensor});
  float Factor = 1.0f / Scale;
  for (int64_t I = 0; I < N * D; ++I) {
    // Two roundings to f32, as the contract says.
    double Exact = float(float(toDouble(Type, At(I))) * Factor);
    uint32_t Expected = fromDouble(Fp8, Exact);
    uint32_t Got = Out.get({I / D, I % D});
    if (std::isnan(Exact) ? Got != 0x7f : Got != Expected)
      return testing::AssertionFailure() << Exact << ": expected 0x" << std::hex
                                         << Expected << ", got 0x" << Got;
  }
  return nothingElseWritten({&X, &ScaleTensor}, {&Out});
}

std::vector<uint32_t> bitsOf(Float Type, const std::vector<float> &Values) {
  std::vector<uint32_t> Bits;
  for (float Value : Values)
    Bits.push_back(fromDouble(Type, Value));
  return Bits;
}

/// A merge whose payload leaves as fp8; past the threshold the suffix's state,
/// or with \p Copies its payload and lse whatever they are.
testing::AssertionResult merges(const StateCase &Case, int64_t N,
                                int64_t ContextRows, float Scale, Spread How,
                                bool WantLse, bool InPlace = false,
                                bool Copies = false) {
  auto [H, D] = Case.Shape;
  Sides S(Case.Type, N * H, 2, D, 23);
  TestTensor Prefix = payloadTensor(Case.Type, {N, H, D}, How, 0);
  TestTensor Suffix = payloadTensor(Case.Type, {N, H, D}, How, 1);
  TestTensor PrefixLse = lseTensor({H, N}, How, 0);
  TestTensor SuffixLse = lseTensor({H, N}, How, 1);
  TestTensor Out = payloadTensor(Fp8, {N, H, D}, How, 2);
  TestTensor OutLse = lseTensor({H, N}, How, 2);
  TestTensor ScaleTensor = lseTensor({1}, Spread::Dense, 0);
  ScaleTensor.setFloat({0}, Scale);
  for (int64_t T = 0; T < N; ++T)
    for (int64_t I = 0; I < H; ++I) {
      setRow(Prefix, S.payload(T * H + I, 0), D, T, I);
      setRow(Suffix, S.payload(T * H + I, 1), D, T, I);
      PrefixLse.setFloat({I, T}, S.lse(T * H + I, 0));
      SuffixLse.setFloat({I, T}, S.lse(T * H + I, 1));
    }
  const TestTensor &ToLse = InPlace ? PrefixLse : OutLse;
  launchOn(
      kernel(Copies ? "merge_attn_states_copy_fp8" : "merge_attn_states_fp8",
             Case.bindings()),
      {Out.view(), WantLse ? ToLse.view() : mlafix::Tensor::none(),
       ScaleTensor.view(), Prefix.view(), PrefixLse.view(), Suffix.view(),
       SuffixLse.view(), ContextRows},
      {&Prefix, &Suffix, &PrefixLse, &SuffixLse, &Out, &OutLse, &ScaleTensor});
  Storage As{Fp8, 1.0f / Scale, Case.BaseTwo};
  for (int64_t T = 0; T < N; ++T)
    for (int64_t I = 0; I < H; ++I) {
      ExpectedRow Row = S.expected(T * H + I, T < ContextRows ? 0 : 1, 2, As);
      bool IsCopy = Copies && T >= ContextRows;
      if (IsCopy) // The payload of a row that is not empty.
        Row = mergeReference(Case.Type, D, {{S.payload(T * H + I, 1), 0}}, As);
      if (testing::AssertionResult Good =
              rowMatches(Row, Fp8, Out, nullptr, T, I);
          !Good)
        return Good << " (token " << T << ", head " << I << ")";
      std::string Why;
      if (IsCopy) {
        float Lse = S.lse(T * H + I, 1);
        uint32_t Bits;
        std::memcpy(&Bits, &Lse, sizeof(Bits));
        if (WantLse && ToLse.get({I, T}) != Bits)
          return testing::AssertionFailure() << "out_lse is no copy of " << Lse;
        continue;
      }
      if (WantLse && !matches(Float::F32, Row.Lse, ToLse.get({I, T}), Why))
        return testing::AssertionFailure() << "out_lse: " << Why;
    }
  std::vector<const TestTensor *> Inputs = {&Prefix, &Suffix, &SuffixLse,
                                            &ScaleTensor};
  if (!InPlace)
    Inputs.push_back(&PrefixLse);
  return nothingElseWritten(Inputs, {&Out, &ToLse});
}

class MergeFp8 : public testing::TestWithParam<StateCase> {};

} // namespace

TEST(Fp8, every_number_and_every_tie) { // N7
  std::vector<uint32_t> Values = bitsOf(Float::F32, boundaries());
  for (Spread How : AllSpreads) {
    ASSERT_TRUE(quantizes(Float::F32, 128, Values, 1.0f, How));
    ASSERT_TRUE(quantizes(Float::F32, 576, Values, 1.0f, How));
  }
}

TEST(Fp8, every_bf16_and_f16) {
  std::vector<uint32_t> Values;
  for (uint32_t Bits = 0; Bits < 0x10000; ++Bits)
    Values.push_back(Bits);
  ASSERT_TRUE(quantizes(Float::BF16, 128, Values, 1.0f, Spread::Dense));
  ASSERT_TRUE(quantizes(Float::F16, 3, Values, 1.0f, Spread::Dense));
}

TEST(Fp8, scales_of_every_kind) {
  std::vector<uint32_t> Values = bitsOf(Float::F32, boundaries());
  for (float Scale :
       {0.125f, 3.0f, 0.0073f, 1e-3f, 1e20f, 1e-30f, INFINITY, -2.0f, NAN})
    ASSERT_TRUE(quantizes(Float::F32, 128, Values, Scale, Spread::Dense))
        << "scale " << Scale;
}

TEST_P(MergeFp8, scaled_saturated_and_exact_where_copied) {
  for (Spread How : AllSpreads)
    for (int64_t ContextRows : {0, 6, 9})
      ASSERT_TRUE(merges(GetParam(), 9, ContextRows, 0.03f, How, true))
          << "spread " << int(How) << ", context_rows " << ContextRows;
  for (Spread How : AllSpreads) // N11
    ASSERT_TRUE(merges(GetParam(), 9, 6, 0.03f, How, true, true))
        << "in place, spread " << int(How);
  // Everything saturates; everything rounds to zero or a denormal.
  ASSERT_TRUE(merges(GetParam(), 5, 3, 1e-4f, Spread::Dense, true));
  ASSERT_TRUE(merges(GetParam(), 5, 3, 300.0f, Spread::Dense, false));
  ASSERT_TRUE(merges(GetParam(), 0, 0, 1.0f, Spread::Dense, true));
}

TEST_P(MergeFp8, rows_past_the_threshold_take_the_suffix_whatever_its_lse) {
  for (Spread How : AllSpreads)
    for (int64_t ContextRows : {0, 6, 9})
      for (bool InPlace : {false, true})
        ASSERT_TRUE(merges(GetParam(), 9, ContextRows, 0.03f, How, true,
                           InPlace, /*Copies=*/true))
            << "spread " << int(How) << ", context_rows " << ContextRows;
  ASSERT_TRUE(merges(GetParam(), 5, 3, 300.0f, Spread::Dense, false, false,
                     /*Copies=*/true));
}

INSTANTIATE_TEST_SUITE_P(All, MergeFp8, testing::ValuesIn(stateCases()),
                         caseName);
