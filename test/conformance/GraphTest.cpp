//===- GraphTest.cpp - Merge and fixup on a GPU, in graphs ----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "FixupRun.h"
#include "MergeRun.h"

using namespace conformance;

namespace {

MergeSetup ofHead(int64_t H, int64_t D, int64_t N) {
  MergeSetup S;
  S.H = H;
  S.D = D;
  S.N = N;
  S.ContextRows = N - N / 8;
  S.Type = Float::BF16;
  return S;
}

} // namespace

// vLLM #40924: in a call in place, a row's lanes may be in several warps. No
// lane may store the lse before all lanes have read it. A kernel with this race
// is rarely wrong, so the test repeats the call.
class InPlace : public testing::TestWithParam<HeadShape> {};

TEST_P(InPlace, vllm_40924_equals_the_separate_result_every_time) { // N11
  MLAFIX_NEEDS_CUDA();
  for (MergeSetup::Place Where :
       {MergeSetup::OverPrefix, MergeSetup::OverSuffix}) {
    MergeSetup Apart = ofHead(GetParam().H, GetParam().D, 64);
    MergeSetup Over = Apart;
    Over.Where = Where;
    MergeRun Expected(device(), Apart), InPlace(device(), Over);
    for (uint64_t Repeat = 0; Repeat < 200; ++Repeat) {
      Expected.refill(Repeat);
      InPlace.refill(Repeat);
      Expected.run();
      InPlace.run();
      for (int64_t T = 0; T < Apart.N; ++T)
        for (int64_t H = 0; H < Apart.H; ++H)
          ASSERT_EQ(Expected.rowBits(T, H), InPlace.rowBits(T, H))
              << "repeat " << Repeat << ", token " << T << ", head " << H;
    }
    ASSERT_TRUE(InPlace.check());
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, InPlace,
                         testing::Values(HeadShape{6, 96}, HeadShape{6, 192},
                                         HeadShape{6, 512}),
                         [](const testing::TestParamInfo<HeadShape> &Info) {
                           return "D" + std::to_string(Info.param.D);
                         });

TEST(Graph, merge_replays_on_changed_inputs) {
  MLAFIX_NEEDS_CUDA();
  MergeRun Run(device(), ofHead(16, 128, 200));
  auto Captured = device().capture([&] { Run.launch(); });
  for (uint64_t Seed : {11, 12, 13}) {
    Run.refill(Seed);
    Captured->replay();
    Run.fetch();
    ASSERT_TRUE(Run.check()) << "replay " << Seed;
  }
}

TEST(Graph, fixup_replays_on_changed_segments) {
  MLAFIX_NEEDS_CUDA();
  FixupSetup S;
  S.H = 16;
  S.D = 128;
  S.N = 300;
  S.KvLens.assign(30, 1);
  S.CuSeqlens = prefixSums(std::vector<int32_t>(30, 10));
  FixupRun Run(device(), S);
  auto Captured = device().capture([&] { Run.launch(); });
  Random R(5);
  for (int Replay = 0; Replay < 5; ++Replay) {
    std::vector<int32_t> KvLens(30), Lengths(30);
    for (int I = 0; I < 30; ++I) {
      KvLens[I] = int32_t(R.below(2));
      Lengths[I] = int32_t(R.below(11));
    }
    Run.refill(KvLens, prefixSums(Lengths));
    Captured->replay();
    Run.fetch();
    ASSERT_TRUE(Run.check()) << "replay " << Replay;
  }
}

TEST(Graph, fixup_then_merge_in_place_in_one_graph) {
  MLAFIX_NEEDS_CUDA();
  MergeSetup S = ofHead(16, 128, 256);
  S.Where = MergeSetup::OverPrefix;
  MergeRun Merge(device(), S);
  FixupSetup F;
  F.H = 16;
  F.D = 128;
  F.N = 64;
  F.KvLens.assign(8, 0);
  F.CuSeqlens = prefixSums(std::vector<int32_t>(8, 8));
  FixupRun Fixup(device(), F);
  auto Captured = device().capture([&] {
    Fixup.launch();
    Merge.launch();
  });
  for (uint64_t Seed : {1, 2, 3, 4}) {
    Merge.refill(Seed);
    Fixup.refill(std::vector<int32_t>{1, 0, 1, 0, 0, -1, 1, 0},
                 prefixSums(std::vector<int32_t>(8, 8)));
    Captured->replay();
    Merge.fetch();
    Fixup.fetch();
    ASSERT_TRUE(Merge.check());
    ASSERT_TRUE(Fixup.check());
  }
}

// A graph may capture the very first launch of a unit. That launch loads the
// unit's code. Loading during a capture must not break the capture.
TEST(Graph, first_launch_of_a_unit_may_be_captured) {
  MLAFIX_NEEDS_CUDA();
  MergeRun Run(device(), ofHead(16, 128, 64));
  mlafix::Unit Fresh = mlafix::Unit::load(unitPath("merge_attn_states"));
  mlafix::Kernel Code =
      Fresh.kernel("merge_attn_states", bindings(16, 128, Float::BF16));
  auto Captured = device().capture([&] {
    Code.launch(Run.arguments(), device().handle(), device().stream(),
                LaunchFlags);
  });
  Run.refill(99);
  Captured->replay();
  Run.fetch();
  ASSERT_TRUE(Run.check());
}

TEST(Graph, bound_launches_repeat_without_checks) {
  MLAFIX_NEEDS_CUDA();
  MergeRun Run(device(), ofHead(16, 128, 100));
  mlafix::Bound Bound =
      Run.kernel().bind(Run.arguments(), device().handle(), LaunchFlags);
  for (uint64_t Seed = 0; Seed < 10; ++Seed) {
    Run.refill(Seed);
    Bound.launch(device().stream());
    Run.fetch();
    ASSERT_TRUE(Run.check());
  }
}
