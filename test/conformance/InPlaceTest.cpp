//===- InPlaceTest.cpp - Merges in place, again and again -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include <cmath>
#include <tuple>
#include <vector>

using namespace conformance;

namespace {

/// The contents of a state: a payload [n, H, D] in bf16, and its lse [H, n]. A
/// quarter of the states are empty.
struct HostState {
  HostState(int64_t Rows, int64_t RowSize, uint64_t Seed)
      : Payload(Rows * RowSize), Lse(Rows) {
    Random R(Seed);
    for (uint16_t &Bits : Payload)
      Bits = R.bf16();
    for (float &Value : Lse) {
      uint64_t Choice = R.below(8);
      Value = Choice == 0   ? -INFINITY
              : Choice == 1 ? INFINITY
                            : float(R.below(64)) / 8;
    }
  }

  std::vector<uint16_t> Payload;
  std::vector<float> Lse;
};

/// The memory of a state on the device.
struct DeviceState {
  explicit DeviceState(const HostState &Like)
      : Payload(device(), 2 * Like.Payload.size()),
        Lse(device(), 4 * Like.Lse.size()) {}

  void upload(const HostState &From) {
    device().upload(Payload.data(), From.Payload.data(),
                    2 * From.Payload.size());
    device().upload(Lse.data(), From.Lse.data(), 4 * From.Lse.size());
  }
  void download(HostState &To) const {
    device().download(To.Payload.data(), Payload.data(), 2 * To.Payload.size());
    device().download(To.Lse.data(), Lse.data(), 4 * To.Lse.size());
  }

  Memory Payload, Lse;
};

class InPlace : public testing::TestWithParam<std::tuple<int64_t, int64_t>> {};

} // namespace

// vLLM #40924: in a call in place, a row's lanes may be in several warps. No
// lane may store the lse before all lanes have read it. A kernel with this race
// is rarely wrong, so the test repeats the call.
TEST_P(InPlace, vllm_40924_equals_the_separate_result_every_time) { // N11
  MLAFIX_NEEDS_CUDA();
  const auto [H, D] = GetParam();
  constexpr int64_t N = 64, ContextRows = N - N / 8;
  mlafix::Kernel Code = kernel("merge_attn_states", H, D);
  HostState Expected(N * H, D, 0), Got = Expected;
  DeviceState Prefix(Expected), Suffix(Expected), Apart(Expected);
  for (uint64_t Repeat = 0; Repeat < 200; ++Repeat) {
    HostState First(N * H, D, 2 * Repeat), Second(N * H, D, 2 * Repeat + 1);
    for (DeviceState *Out : {&Apart, &Prefix, &Suffix}) {
      Prefix.upload(First);
      Suffix.upload(Second);
      std::vector<mlafix::Arg> Arguments;
      for (DeviceState *State : {Out, &Prefix, &Suffix}) {
        Arguments.push_back(tensor(State->Payload, MLAFIX_BF16, {N, H, D}));
        Arguments.push_back(tensor(State->Lse, MLAFIX_F32, {H, N}));
      }
      Arguments.push_back(ContextRows);
      Code.launch(Arguments, device().handle(), device().stream(), LaunchFlags);
      device().synchronize();
      Out->download(Out == &Apart ? Expected : Got);
      if (Out == &Apart)
        continue;
      const char *Place = Out == &Prefix ? "prefix" : "suffix";
      ASSERT_EQ(Expected.Payload, Got.Payload)
          << "repeat " << Repeat << ", over the " << Place;
      ASSERT_EQ(Expected.Lse, Got.Lse)
          << "repeat " << Repeat << ", over the " << Place;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, InPlace,
    testing::Values(std::tuple(6, 96), std::tuple(6, 192), std::tuple(6, 512)),
    [](const testing::TestParamInfo<std::tuple<int64_t, int64_t>> &Info) {
      return "D" + std::to_string(std::get<1>(Info.param));
    });
