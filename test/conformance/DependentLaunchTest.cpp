//===- DependentLaunchTest.cpp - Grids that start early -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Tests kernels that start before the preceding grid ends and wait for it with
// griddepcontrol.wait. A mix is a list of steps: launches of these kernels, and
// all other work that a stream or a captured graph may contain. Steps read what
// earlier steps wrote, or overwrite what earlier steps read. The expected bytes
// come from the same steps without dependent launch, with the host waiting
// after each step. test/python compares the results of each kernel with f64.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"
#include "Streams.h"

#include <cstdlib>
#include <cstring>
#include <ostream>

using namespace conformance;

namespace {

constexpr int64_t N = 256, H = 16, D = 128, Sequences = 64;
constexpr size_t RowBytes = N * H * D * 2, LseBytes = N * H * 4;

/// A state's payload [N, H, D] bf16 and its lse [H, N].
struct State {
  Memory Rows{device(), RowBytes}, Lse{device(), LseBytes};

  mlafix::Tensor rows() const { return tensor(Rows, MLAFIX_BF16, {N, H, D}); }
  mlafix::Tensor lse() const { return tensor(Lse, MLAFIX_F32, {H, N}); }
};

/// The memory of a mix. A and B are inputs; the other states start as poison.
struct Buffers {
  State A, B, C, E, F;
  Memory KvLens{device(), Sequences * 4};
  Memory CuSeqlens{device(), (Sequences + 1) * 4};

  std::vector<State *> states() { return {&A, &B, &C, &E, &F}; }

  void refill(uint64_t Seed) {
    for (State *S : states()) {
      bool Poison = S != &A && S != &B;
      std::vector<uint16_t> Rows(N * H * D, 0x7fc1); // NaN
      std::vector<float> Lse(N * H, -7e30f);
      uint64_t Salt = Seed * 1000003 + (S == &A ? 0 : 500009);
      if (!Poison) {
        // Bf16 from 0.5 to 2, with either sign.
        for (size_t I = 0; I < Rows.size(); ++I)
          Rows[I] = uint16_t(0x3f00 | (hash(I * 2654435761 + Salt) & 0x80ff));
        for (size_t I = 0; I < Lse.size(); ++I)
          Lse[I] = float(int64_t(hash(I + Salt) % 64) - 32) / 8;
      }
      device().upload(S->Rows.data(), Rows.data(), RowBytes);
      device().upload(S->Lse.data(), Lse.data(), LseBytes);
    }
    std::vector<int32_t> Lens, Cu = {0};
    for (int64_t I = 0; I < Sequences; ++I) {
      uint64_t Choice = hash(I + Seed * 77);
      Lens.push_back(int32_t(Choice % 2));
      Cu.push_back(Cu.back() + int32_t(Choice / 2 % (N / Sequences + 1)));
    }
    device().upload(KvLens.data(), Lens.data(), Sequences * 4);
    device().upload(CuSeqlens.data(), Cu.data(), (Sequences + 1) * 4);
  }

  std::vector<std::vector<char>> fetch() {
    std::vector<std::vector<char>> Result;
    for (State *S : states()) {
      Result.emplace_back(RowBytes);
      device().download(Result.back().data(), S->Rows.data(), RowBytes);
      Result.emplace_back(LseBytes);
      device().download(Result.back().data(), S->Lse.data(), LseBytes);
    }
    return Result;
  }
};

/// Enqueues steps on the device's stream (`main`) or on a second one (`side`).
class Queue {
public:
  Queue(Streams &On, Buffers &With, uint32_t Flags, bool Waits)
      : On(On), With(With), Flags(LaunchFlags | Flags), Waits(Waits) {}

  void *main() const { return device().stream(); }
  void *side() const { return On.side(); }
  bool hasDependentLaunch() const { return On.hasDependentLaunch(); }

  /// Blanks the rows of S that belong to sequences without keys, in place.
  void fixup(State &S, void *Stream) {
    Fixup.launch({S.rows(), S.lse(),
                  tensor(With.KvLens, MLAFIX_I32, {Sequences}),
                  tensor(With.CuSeqlens, MLAFIX_I32, {Sequences + 1})},
                 device().handle(), Stream, Flags);
    done(Stream);
  }
  void fixup(State &S) { fixup(S, main()); }

  /// Stores the merge of X and Y to Out. The last eighth of the rows copies Y.
  void merge(State &Out, State &X, State &Y, void *Stream) {
    Merge.launch({Out.rows(), Out.lse(), X.rows(), X.lse(), Y.rows(), Y.lse(),
                  ContextRows},
                 device().handle(), Stream, Flags);
    done(Stream);
  }
  void merge(State &Out, State &X, State &Y) { merge(Out, X, Y, main()); }

  void copy(State &To, State &From, void *Stream) {
    On.copy(To.Rows.data(), From.Rows.data(), RowBytes, Stream);
    done(Stream);
    On.copy(To.Lse.data(), From.Lse.data(), LseBytes, Stream);
    done(Stream);
  }
  void copy(State &To, State &From) { copy(To, From, main()); }

  /// Stores the inverted payload bits of `From` in `To`, and keeps the lse of
  /// `To`.
  void invert(Foreign Kind, State &To, State &From, bool Attributed = false) {
    On.invert(Kind, To.Rows.data(), From.Rows.data(), RowBytes, main(),
              Attributed);
    done(main());
  }

  void fill(Memory &Data, unsigned char Byte, size_t Bytes) {
    On.fill(Data.data(), Byte, Bytes, main());
    done(main());
  }

  void join(void *Behind, void *Later) { On.join(Behind, Later); }

private:
  void done(void *Stream) {
    if (Waits)
      On.synchronize(Stream);
  }

  static constexpr int64_t ContextRows = N - N / 8;
  Streams &On;
  Buffers &With;
  uint32_t Flags;
  bool Waits;
  mlafix::Kernel Merge = kernel("merge_attn_states", H, D);
  mlafix::Kernel Fixup = kernel("fixup_zero_kv_rows", H, D);
};

struct Mix {
  const char *Name;
  void (*Steps)(Queue &Q, Buffers &B);
  bool NeedsTrigger = false;
};

void PrintTo(const Mix &M, std::ostream *Out) { *Out << M.Name; }

const Mix Mixes[] = {
    {"chain",
     [](Queue &Q, Buffers &B) {
       Q.fixup(B.A);
       Q.merge(B.C, B.A, B.B);
       Q.merge(B.E, B.C, B.B);
       Q.fixup(B.E);
       Q.merge(B.C, B.E, B.A); // overwrites what the merge into B.E read
       Q.merge(B.C, B.C, B.B); // in place
     }},
    {"copies_before_and_after",
     [](Queue &Q, Buffers &B) {
       Q.copy(B.C, B.A);
       Q.merge(B.E, B.C, B.B);
       Q.copy(B.F, B.E);
       Q.fixup(B.F);
       Q.merge(B.C, B.F, B.E);
       Q.copy(B.F, B.C); // overwrites what the merge reads
     }},
    {"fills_before_and_after",
     [](Queue &Q, Buffers &B) {
       Q.fill(B.A.Rows, 0, RowBytes);
       Q.merge(B.C, B.A, B.B);
       Q.fill(B.A.Rows, 0x3f, RowBytes); // overwrites what the merge reads
       Q.merge(B.E, B.A, B.C);
       Q.fixup(B.E);
       Q.fill(B.C.Lse, 0, LseBytes);
       Q.merge(B.F, B.E, B.C);
     }},
    {"event_fork_and_join",
     [](Queue &Q, Buffers &B) {
       Q.fixup(B.A);
       Q.join(Q.main(), Q.side());
       Q.merge(B.C, B.A, B.B, Q.side());
       Q.merge(B.E, B.B, B.A);
       Q.join(Q.side(), Q.main());
       Q.merge(B.F, B.C, B.E);
       Q.join(Q.main(), Q.side());
       Q.copy(B.C, B.F, Q.side());
       Q.fixup(B.C, Q.side());
       Q.join(Q.side(), Q.main());
       Q.merge(B.E, B.C, B.B);
     }},
    {"a_plain_kernel_before_and_after",
     [](Queue &Q, Buffers &B) {
       Q.invert(Foreign::Plain, B.A, B.A);
       Q.fixup(B.A);
       Q.merge(B.C, B.A, B.B);
       Q.invert(Foreign::Plain, B.E, B.C);
       Q.copy(B.F, B.C);
       Q.invert(Foreign::Plain, B.B, B.E); // overwrites what a merge read
       Q.merge(B.C, B.B, B.F);
     }},
    {"a_kernel_that_triggers_before_it_stores",
     [](Queue &Q, Buffers &B) {
       Q.invert(Foreign::EarlyTrigger, B.A, B.B);
       Q.merge(B.C, B.A, B.B);
       Q.invert(Foreign::EarlyTrigger, B.A, B.C, /*Attributed=*/true);
       Q.fixup(B.A);
       Q.invert(Foreign::EarlyTrigger, B.B, B.A, /*Attributed=*/true);
       Q.merge(B.E, B.A, B.B);
       Q.merge(B.F, B.E, B.B);
     },
     /*NeedsTrigger=*/true},
};

/// Fails with the first difference between two runs.
testing::AssertionResult equal(const std::vector<std::vector<char>> &Expected,
                               const std::vector<std::vector<char>> &Got) {
  for (size_t I = 0; I < Expected.size() && Expected != Got; ++I)
    for (size_t J = 0; J < Expected[I].size(); ++J)
      if (Expected[I][J] != Got[I][J])
        return testing::AssertionFailure()
               << "expected byte " << J << " of the "
               << (I % 2 ? "lse" : "rows") << " of state "
               << "ABCEF"[I / 2] << " as with the host waiting "
               << "after each step, got another";
  return testing::AssertionSuccess();
}

class DependentLaunch : public testing::TestWithParam<Mix> {};

constexpr uint64_t Seeds = 4;
constexpr int Repeats = 4;

} // namespace

TEST_P(DependentLaunch, is_right_in_streams_and_graphs_on_and_off) {
  MLAFIX_NEEDS_CUDA();
  Streams On;
  if (GetParam().NeedsTrigger && !On.hasDependentLaunch())
    GTEST_SKIP() << "needs griddepcontrol, of sm_90 and later";
  Buffers B;
  auto Steps = [&](uint32_t Flags, bool Waits) {
    Queue Q(On, B, Flags, Waits);
    GetParam().Steps(Q, B);
  };
  std::vector<std::vector<std::vector<char>>> Expected;
  for (uint64_t Seed = 0; Seed < Seeds; ++Seed) {
    B.refill(Seed);
    Steps(MLAFIX_LAUNCH_NO_DEPENDENT, /*Waits=*/true);
    Expected.push_back(B.fetch());
  }
  // Different inputs must give different results, or the comparisons below
  // would mean nothing.
  ASSERT_FALSE(equal(Expected[0], Expected[1]));
  for (uint32_t Flags : {0u, uint32_t(MLAFIX_LAUNCH_NO_DEPENDENT)}) {
    std::string How = Flags ? "off" : "on";
    auto Captured = device().capture([&] { Steps(Flags, /*Waits=*/false); });
    for (int Repeat = 0; Repeat < Repeats; ++Repeat)
      for (uint64_t Seed = 0; Seed < Seeds; ++Seed) {
        B.refill(Seed);
        Steps(Flags, /*Waits=*/false);
        device().synchronize();
        ASSERT_TRUE(equal(Expected[Seed], B.fetch()))
            << "in a stream, " << How << ", seed " << Seed;
        B.refill(Seed);
        Captured->replay();
        ASSERT_TRUE(equal(Expected[Seed], B.fetch()))
            << "in a graph, " << How << ", seed " << Seed;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Mixes, DependentLaunch, testing::ValuesIn(Mixes),
                         [](const testing::TestParamInfo<Mix> &Info) {
                           return Info.param.Name;
                         });

// Tests that dependent launch is turned off by MLAFIX_LAUNCH_NO_DEPENDENT and
// by the environment variable MLAFIX_NO_DEPENDENT_LAUNCH. scripts/gpu-kit/run
// repeats these tests with the variable set.
TEST(DependentLaunchSwitch, flag_and_variable_turn_it_off) {
  MLAFIX_NEEDS_CUDA();
  Streams On;
  Buffers B;
  B.refill(1);
  auto IsDependent = [&](uint32_t Flags) {
    mlafix::Bound Bound = kernel("merge_attn_states", H, D)
                              .bind({B.C.rows(), B.C.lse(), B.A.rows(),
                                     B.A.lse(), B.B.rows(), B.B.lse(), N},
                                    device().handle(), LaunchFlags | Flags);
    return Bound.info().dependent != 0;
  };
  const char *Variable = std::getenv("MLAFIX_NO_DEPENDENT_LAUNCH");
  bool Off = Variable && *Variable && std::strcmp(Variable, "0") != 0;
  EXPECT_EQ(IsDependent(0), On.hasDependentLaunch() && !Off);
  EXPECT_FALSE(IsDependent(MLAFIX_LAUNCH_NO_DEPENDENT));
}
