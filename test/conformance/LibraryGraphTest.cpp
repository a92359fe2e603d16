//===- LibraryGraphTest.cpp - the library in captured graphs --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Changes that a captured graph must follow when it is replayed: counts that
// live on the device, and changed inputs.
//
//===----------------------------------------------------------------------===//

#include "Blank.h"

using namespace conformance;

namespace {

const StateCase Decode{{16, 128}, Float::BF16, false};

std::unique_ptr<support::Graph> capture(const mlafix::Kernel &Code,
                                        std::vector<mlafix::Arg> Arguments) {
  return device().capture([=] {
    Code.launch(Arguments, device().handle(), device().stream(), LaunchFlags);
  });
}

void replay(support::Graph &Captured,
            const std::vector<TestTensor *> &Tensors) {
  for (TestTensor *Tensor : Tensors)
    Tensor->upload();
  Captured.replay();
  device().synchronize();
  for (TestTensor *Tensor : Tensors)
    Tensor->download();
}

/// Code for a count on the device.
constexpr char Held[] = ",live_rows_at=present";

} // namespace

TEST(LibraryGraph, pad_rows_follow_the_count_on_the_device) {
  MLAFIX_NEEDS_CUDA();
  BlankRows Rows(Decode, 64, Spread::Dense);
  TestTensor Live = intTensor({0});
  auto Captured = capture(kernel("fill_pad_rows", Decode.bindings() + Held),
                          {Rows.Out.view(), Rows.Lse.view(), 0, Live.view()});
  for (int32_t Count : {64, 1, 17, 0, 63, -1}) {
    Rows.refill();
    Live.setInt({0}, Count);
    replay(*Captured, {&Rows.Out, &Rows.Lse, &Live});
    ASSERT_TRUE(Rows.check([=](int64_t T) { return T >= Count; }, true, true))
        << Count << " live rows";
  }
}

TEST(LibraryGraph, context_masks_follow_changed_requests) {
  MLAFIX_NEEDS_CUDA();
  BlankRows Rows(Decode, 40, Spread::Dense);
  TestTensor Query = intTensor({0, 10, 20, 30, 40});
  TestTensor Context = intTensor({0, 0, 0, 0, 0});
  auto Captured =
      capture(kernel("mask_empty_context", Decode.bindings()),
              {Rows.Out.view(), Rows.Lse.view(), Query.view(), Context.view()});
  for (int Pattern = 0; Pattern < 16; ++Pattern) {
    Rows.refill();
    int32_t Sum = 0;
    for (int I = 0; I < 4; ++I)
      Context.setInt({I + 1}, Sum += Pattern >> I & 1);
    replay(*Captured, {&Rows.Out, &Rows.Lse, &Query, &Context});
    ASSERT_TRUE(Rows.check(
        [=](int64_t T) { return !(Pattern >> (T / 10) & 1); }, true, true));
  }
}

TEST(LibraryGraph, metadata_follows_the_count_on_the_device) {
  MLAFIX_NEEDS_CUDA();
  const int64_t N = 32, L = 4;
  TestTensor Flags(device(), MLAFIX_BOOL, Layout::contiguous({N}));
  TestTensor Expanded(device(), MLAFIX_I32, Layout::contiguous({N, L}));
  std::vector<int32_t> Computed, Prompt, Lens;
  for (int64_t I = 0; I < N; ++I) {
    Computed.push_back(int32_t(hash(I) % 9));
    Prompt.push_back(int32_t(hash(I + 99) % 9));
    Lens.push_back(int32_t(hash(I + 7) % 12));
  }
  TestTensor C = intTensor(Computed), P = intTensor(Prompt),
             S = intTensor(Lens), Live = intTensor({0});
  auto Marks = capture(kernel("mark_prefilling", std::string("I=i32") + Held),
                       {Flags.view(), C.view(), P.view(), 0, Live.view()});
  auto Lengths = capture(kernel("expand_context_lens", &Held[1]),
                         {Expanded.view(), S.view(), 0, Live.view()});
  for (int32_t Count : {32, 5, 0, 31}) {
    Flags.poison();
    Expanded.poison();
    Live.setInt({0}, Count);
    replay(*Marks, {&Flags, &C, &P, &Live});
    replay(*Lengths, {&Expanded, &S});
    for (int64_t I = 0; I < N; ++I) {
      ASSERT_EQ(I < Count && Computed[I] < Prompt[I], Flags.get({I}) == 1);
      for (int64_t J = 0; J < L; ++J)
        ASSERT_EQ(I < Count ? std::max<int64_t>(Lens[I] - L + 1 + J, 0) : 0,
                  int32_t(Expanded.get({I, J})));
    }
  }
}

TEST(LibraryGraph, merges_of_many_follow_changed_inputs) {
  MLAFIX_NEEDS_CUDA();
  const int64_t N = 24, K = 5, H = Decode.Shape.H, D = Decode.Shape.D;
  TestTensor V = payloadTensor(Decode.Type, {N, K, H, D}, Spread::Dense, 0);
  TestTensor Lse = lseTensor({N, K, H}, Spread::Dense, 0);
  TestTensor Out = payloadTensor(Decode.Type, {N, H, D}, Spread::Dense, 1);
  TestTensor OutLse = lseTensor({N, H}, Spread::Dense, 1);
  auto Captured = capture(kernel("merge_states", Decode.bindings()),
                          {Out.view(), OutLse.view(), V.view(), Lse.view()});
  for (uint64_t Seed : {1, 2, 3}) {
    Sides S(Decode.Type, N * H, K, D, Seed);
    for (int64_t T = 0; T < N; ++T)
      for (int64_t J = 0; J < K; ++J)
        for (int64_t I = 0; I < H; ++I) {
          setRow(V, S.payload(T * H + I, J), D, T, J, I);
          Lse.setFloat({T, J, I}, S.lse(T * H + I, J));
        }
    Out.poison();
    OutLse.poison();
    replay(*Captured, {&V, &Lse, &Out, &OutLse});
    for (int64_t T = 0; T < N; ++T)
      for (int64_t I = 0; I < H; ++I)
        ASSERT_TRUE(rowMatches(S.expected(T * H + I, 0, K, {Decode.Type}),
                               Decode.Type, Out, &OutLse, T, I));
  }
}
