//===- MetadataTest.cpp - flags and context lengths -----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// clear_pad_flags, mark_prefilling and expand_context_lens, with the count of
// live rows from the host and from the device.
//
//===----------------------------------------------------------------------===//

#include "Blank.h"

#include <algorithm>
#include <climits>

using namespace conformance;

namespace {

enum Count { FromHost, FromDevice };

/// Bindings for calls that pass the count so.
std::string counted(Count From, const std::string &More = "") {
  return (From == FromDevice ? "live_rows_at=present" : "live_rows_at=absent") +
         More;
}

/// The two arguments that a count is; the tensor must outlive the launch.
std::vector<mlafix::Arg> withCount(std::vector<mlafix::Arg> Arguments,
                                   const TestTensor &OnDevice, int64_t Live,
                                   Count From) {
  bool IsHeld = From == FromDevice;
  Arguments.push_back(IsHeld ? 0 : Live);
  Arguments.push_back(IsHeld ? OnDevice.view() : mlafix::Tensor::none());
  return Arguments;
}

/// A layout with and one without gaps.
Layout vectorLayout(int64_t N, bool Gaps) {
  Layout L = Layout::contiguous({N});
  if (Gaps) {
    L.Strides = {3};
    L.Offset = 1;
  }
  return L;
}

testing::AssertionResult clearsFlags(int64_t N, int64_t Live, bool Gaps,
                                     Count From) {
  TestTensor Flags(device(), MLAFIX_BOOL, vectorLayout(N, Gaps));
  TestTensor OnDevice = intTensor({int32_t(Live)});
  for (int64_t I = 0; I < N; ++I)
    Flags.set({I}, 1);
  launchOn(kernel("clear_pad_flags", counted(From)),
           withCount({Flags.view()}, OnDevice, Live, From),
           {&Flags, &OnDevice});
  for (int64_t I = 0; I < N; ++I)
    if (Flags.get({I}) != (I < Live ? 1u : 0u))
      return testing::AssertionFailure()
             << "flags[" << I << "] = " << Flags.get({I});
  return nothingElseWritten({&OnDevice}, {&Flags});
}

/// \p Wide: the counts are i64, some beyond i32.
testing::AssertionResult marksPrefilling(int64_t N, int64_t M, int64_t Live,
                                         bool Wide, bool Gaps, Count From) {
  TestTensor Flags(device(), MLAFIX_BOOL, vectorLayout(N, Gaps));
  mlafix_dtype Type = Wide ? MLAFIX_I64 : MLAFIX_I32;
  TestTensor Computed(device(), Type, vectorLayout(M, Gaps));
  TestTensor Prompt(device(), Type, vectorLayout(M, Gaps));
  TestTensor OnDevice = intTensor({int32_t(Live)});
  std::vector<bool> Expected(size_t(N), false);
  for (int64_t I = 0; I < M; ++I) {
    // Equal, less, more, and far away.
    int64_t P = int64_t(hash(I) % 1000);
    int64_t C = P + (I % 3 - 1) * (I % 4 ? 1 : 500);
    if (I % 7 == 3) {
      C = Wide ? INT64_MIN : INT_MIN;
      P = Wide ? INT64_MAX : INT_MAX;
    }
    Computed.setWide({I}, C);
    Prompt.setWide({I}, P);
    if (I < N)
      Expected[size_t(I)] = I < Live && C < P;
  }
  launchOn(kernel("mark_prefilling", counted(From, Wide ? ",I=i64" : ",I=i32")),
           withCount({Flags.view(), Computed.view(), Prompt.view()}, OnDevice,
                     Live, From),
           {&Flags, &Computed, &Prompt, &OnDevice});
  for (int64_t I = 0; I < N; ++I)
    if (Flags.get({I}) != uint32_t(Expected[size_t(I)]))
      return testing::AssertionFailure()
             << "flags[" << I << "]: expected " << Expected[size_t(I)]
             << ", got " << Flags.get({I});
  return nothingElseWritten({&Computed, &Prompt, &OnDevice}, {&Flags});
}

testing::AssertionResult expands(int64_t D, int64_t L,
                                 const std::vector<int32_t> &Lens, int64_t Live,
                                 bool Gaps, Count From) {
  Layout Where = Layout::contiguous({D, L});
  if (Gaps) {
    Where.Strides = {2 * L + 3, 2};
    Where.Offset = 1;
  }
  TestTensor Out(device(), MLAFIX_I32, Where);
  TestTensor Seqs = intTensor(Lens);
  TestTensor OnDevice = intTensor({int32_t(Live)});
  launchOn(kernel("expand_context_lens", counted(From)),
           withCount({Out.view(), Seqs.view()}, OnDevice, Live, From),
           {&Out, &Seqs, &OnDevice});
  for (int64_t I = 0; I < D; ++I)
    for (int64_t J = 0; J < L; ++J) {
      int64_t Expected = 0;
      if (I < Live && I < int64_t(Lens.size()))
        Expected = std::max<int64_t>(int64_t(Lens[size_t(I)]) - L + 1 + J, 0);
      if (int32_t(Out.get({I, J})) != Expected)
        return testing::AssertionFailure()
               << "out[" << I << ", " << J << "]: expected " << Expected
               << ", got " << int32_t(Out.get({I, J}));
    }
  return nothingElseWritten({&Seqs, &OnDevice}, {&Out});
}

} // namespace

TEST(Metadata, flags_of_pad_rows_are_cleared) {
  for (Count From : {FromHost, FromDevice})
    for (bool Gaps : {false, true})
      for (int64_t N : {0, 1, 5, 300})
        for (int64_t Live : {int64_t(0), N / 2, N})
          ASSERT_TRUE(clearsFlags(N, Live, Gaps, From))
              << "n = " << N << ", live_rows = " << Live;
  EXPECT_TRUE(clearsFlags(5, -3, false, FromDevice));
  EXPECT_TRUE(clearsFlags(5, INT_MAX, false, FromDevice));
  EXPECT_THROW(clearsFlags(5, 6, false, FromHost), mlafix::Error);
}

// vLLM #41873: is_prefilling = computed < prompt on the live requests, and
// false, not what it was in an earlier batch, on those that pad the graph.
TEST(Metadata, vllm_41873_pad_rows_are_not_prefilling) {
  for (Count From : {FromHost, FromDevice})
    for (bool Wide : {false, true})
      for (bool Gaps : {false, true})
        for (int64_t N : {0, 1, 8, 300})
          for (int64_t Live : {int64_t(0), N / 2, N})
            ASSERT_TRUE(marksPrefilling(N, N, Live, Wide, Gaps, From))
                << "n = " << N << ", live_rows = " << Live;
}

TEST(Metadata, prefilling_never_reads_past_the_counts) {
  for (Count From : {FromHost, FromDevice}) {
    EXPECT_TRUE(marksPrefilling(8, 5, 8, false, false, From));
    EXPECT_TRUE(marksPrefilling(8, 0, 8, true, false, From));
    EXPECT_TRUE(marksPrefilling(3, 9, 3, true, true, From));
  }
  EXPECT_TRUE(marksPrefilling(8, 8, -1, false, false, FromDevice));
  EXPECT_TRUE(marksPrefilling(8, 8, INT_MAX, false, false, FromDevice));
}

// vLLM #42135: one contiguous [num_decodes, max_decode_len] view of context
// lengths, clamped at 0: a negative length read as unsigned hung a kernel.
TEST(Metadata, vllm_42135_context_lens_are_expanded_and_clamped) {
  std::vector<int32_t> Lens = {17, 0, 1, 3, 4, 202752, -1, INT_MIN, INT_MAX};
  for (Count From : {FromHost, FromDevice})
    for (bool Gaps : {false, true})
      for (int64_t L : {1, 2, 4, 33})
        for (int64_t Live : {0, 5, 9, 12}) {
          ASSERT_TRUE(expands(9, L, Lens, Live, Gaps, From))
              << "l = " << L << ", live_rows = " << Live;
          // More rows than requests, and fewer.
          ASSERT_TRUE(expands(12, L, Lens, Live, Gaps, From));
          ASSERT_TRUE(expands(4, L, Lens, Live, Gaps, From));
        }
  for (Count From : {FromHost, FromDevice}) {
    EXPECT_TRUE(expands(0, 3, Lens, 0, false, From));
    EXPECT_TRUE(expands(3, 0, Lens, 3, false, From));
    EXPECT_TRUE(expands(3, 4, {}, 3, false, From));
    EXPECT_TRUE(expands(3, 4, Lens, -1, false, From));
  }
}
