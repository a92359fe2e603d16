//===- RanksTest.cpp - Kernels that read or send rows of ranks ------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Tests kernels/rows_of_ranks.mlir and kernels/rows_sent_to_ranks.mlir. This
// process launches for all ranks, with one stream for each. On a GPU, the
// kernels of the ranks wait for each other, so the launches must be small
// enough to run at the same time.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"
#include "Streams.h"

#include <cstring>

using namespace conformance;

namespace {

constexpr int64_t N = 33;
constexpr uint32_t Rounds = 6;

/// The tensors of one rank for each round, and the memory that receives rows of
/// other ranks.
struct Rank {
  Rank(uint32_t Ranks, int64_t D) {
    size_t Block = size_t(Ranks) * N;
    for (uint32_t Round = 0; Round < Rounds; ++Round) {
      Rows.emplace_back(device(), Block * D * 2);
      Counts.emplace_back(device(), Block * 4);
      Outs.emplace_back(device(), N * D * 4);
    }
    Staged = Memory(device(), 2 * Block * D * 2);
    StagedCounts = Memory(device(), 2 * Block * 4);
    size_t Bytes = MLAFIX_GROUP_BYTES + 8 * Block; // a slot for each row
    Workspace = Memory(device(), Bytes);
    device().fill(Workspace.data(), 0, Bytes);
    // Fills the memory for received rows with 3.4e38 (bf16 0x7f7f), and that
    // for their counts with 0x7f7f7f7f. So a kernel that reads a row or a count
    // before the sender has stored it gets a wrong sum.
    device().fill(Staged.data(), 0x7f, 2 * Block * D * 2);
    device().fill(StagedCounts.data(), 0x7f, 2 * Block * 4);
  }

  std::vector<Memory> Rows, Counts, Outs;
  Memory Staged, StagedCounts, Workspace;
  std::vector<std::vector<uint16_t>> HostRows;
  std::vector<std::vector<int32_t>> HostCounts;
};

/// One argument with the tensors of all ranks.
struct AllOf {
  AllOf(std::vector<void *> Where, mlafix_dtype Type,
        std::vector<int64_t> Extents, const mlafix_group *Group)
      : Data(std::move(Where)), Sizes(std::move(Extents)) {
    Each = mlafix_contiguous(nullptr, Type, uint32_t(Sizes.size()),
                             Sizes.data(), device().handle());
    Peers.ranks = uint32_t(Data.size());
    Peers.data = Data.data();
    Peers.each = &Each;
    Peers.group = Group;
  }
  AllOf(const AllOf &) = delete;

  std::vector<void *> Data;
  std::vector<int64_t> Sizes;
  mlafix_tensor Each;
  mlafix_peers Peers = MLAFIX_PEERS_INIT;
};

class Group {
public:
  Group(uint32_t Count, int64_t D) : D(D), Sides(Count - 1) {
    for (uint32_t R = 0; R < Count; ++R)
      Ranks.emplace_back(Count, D);
    for (Rank &One : Ranks)
      Workspaces.push_back(One.Workspace.data());
    std::string Bindings = "D=" + std::to_string(D) + ",T=bf16";
    Pull = std::make_unique<mlafix::Kernel>(kernel("rows_of_ranks", Bindings));
    if (device().isCuda()) {
      Push = std::make_unique<mlafix::Kernel>(
          kernel("rows_sent_to_ranks", Bindings));
      // Loads the code before the first launch. A later load might wait for a
      // kernel that waits for a rank which is launched after the load.
      Push->code(device().handle());
      for (auto &Side : Sides)
        Side = std::make_unique<Streams>();
    }
    Pull->code(device().handle());
    fill();
    device().synchronize(); // the other streams do not wait for this stream
  }

  /// Launches one kernel on each rank: rows_sent_to_ranks if `Pushes`, else
  /// rows_of_ranks.
  void launch(bool Pushes, uint32_t Round) {
    for (uint32_t R = 0; R < Ranks.size(); ++R) {
      mlafix_group Self = MLAFIX_GROUP_INIT;
      Self.ranks = uint32_t(Ranks.size());
      Self.rank = R;
      Self.workspaces = Workspaces.data();
      Self.slots = N;
      Pushes ? push(Self, Round) : pull(Self, Round);
    }
  }
  void synchronize() {
    device().synchronize();
    for (auto &Side : Sides)
      if (Side)
        Side->synchronize(Side->side());
  }
  testing::AssertionResult isRight(bool Pushes, uint32_t Round) const;

private:
  void fill();
  void pull(const mlafix_group &Self, uint32_t Round);
  void push(const mlafix_group &Self, uint32_t Round);
  void *stream(uint32_t R) const {
    return R == 0 || !Sides[R - 1] ? device().stream() : Sides[R - 1]->side();
  }
  template <typename Get> std::vector<void *> each(Get Of) {
    std::vector<void *> All;
    for (Rank &One : Ranks)
      All.push_back(Of(One).data());
    return All;
  }
  int64_t count() const { return int64_t(Ranks.size()); }

  int64_t D;
  std::vector<Rank> Ranks;
  std::vector<std::unique_ptr<Streams>> Sides;
  std::vector<void *> Workspaces;
  std::unique_ptr<mlafix::Kernel> Pull, Push;
};

void Group::fill() {
  Random Numbers{uint64_t(D)};
  for (Rank &One : Ranks)
    for (uint32_t Round = 0; Round < Rounds; ++Round) {
      std::vector<uint16_t> Rows(size_t(count() * N * D));
      std::vector<int32_t> Counts(size_t(count() * N));
      for (uint16_t &Bits : Rows)
        Bits = Numbers.bf16();
      for (int32_t &Count : Counts)
        Count = Numbers.below(3) > 0;
      device().upload(One.Rows[Round].data(), Rows.data(), 2 * Rows.size());
      device().upload(One.Counts[Round].data(), Counts.data(),
                      4 * Counts.size());
      One.HostRows.push_back(std::move(Rows));
      One.HostCounts.push_back(std::move(Counts));
    }
}

/// Launches rows_of_ranks, which reads the rows of all ranks, on one rank.
void Group::pull(const mlafix_group &Self, uint32_t Round) {
  AllOf Rows(each([&](Rank &One) -> Memory & { return One.Rows[Round]; }),
             MLAFIX_BF16, {N, D}, &Self);
  AllOf Counts(each([&](Rank &One) -> Memory & { return One.Counts[Round]; }),
               MLAFIX_I32, {N}, &Self);
  Pull->launch({tensor(Ranks[Self.rank].Outs[Round], MLAFIX_F32, {N, D}),
                Rows.Peers, Counts.Peers},
               device().handle(), stream(Self.rank));
}

void Group::push(const mlafix_group &Self, uint32_t Round) {
  const Rank &Own = Ranks[Self.rank];
  AllOf Staged(each([](Rank &One) -> Memory & { return One.Staged; }),
               MLAFIX_BF16, {2, count(), N, D}, &Self);
  AllOf Counts(each([](Rank &One) -> Memory & { return One.StagedCounts; }),
               MLAFIX_I32, {2, count(), N}, &Self);
  Push->launch(
      {tensor(Own.Outs[Round], MLAFIX_F32, {N, D}), Staged.Peers, Counts.Peers,
       tensor(Own.Rows[Round], MLAFIX_BF16, {count(), N, D}),
       tensor(Own.Counts[Round], MLAFIX_I32, {count(), N}), int64_t(Self.rank)},
      device().handle(), stream(Self.rank));
}

/// Returns the number with the given bits: a bf16 is the upper half of an f32.
float widen(uint16_t Bits) {
  uint32_t Wide = uint32_t(Bits) << 16;
  float Value;
  std::memcpy(&Value, &Wide, 4);
  return Value;
}

testing::AssertionResult Group::isRight(bool Pushes, uint32_t Round) const {
  for (uint32_t R = 0; R < Ranks.size(); ++R) {
    std::vector<float> Got(size_t(N * D));
    device().download(Got.data(), Ranks[R].Outs[Round].data(), 4 * Got.size());
    size_t First = Pushes ? R * size_t(N) : 0;
    for (size_t I = 0; I < Got.size(); ++I) {
      float Want = 0;
      for (const Rank &From : Ranks)
        if (From.HostCounts[Round][First + I / D] > 0)
          Want += widen(From.HostRows[Round][First * D + I]);
      if (Got[I] != Want)
        return testing::AssertionFailure()
               << "rank " << R << ", round " << Round << ", element " << I
               << ": expected " << Want << ", got " << Got[I];
    }
  }
  return testing::AssertionSuccess();
}

constexpr int64_t Dims[] = {7, 96, 128};

} // namespace

TEST(Ranks, read_each_others_rows) {
  for (uint32_t Count : {1u, 2u, 3u})
    for (int64_t D : Dims) {
      Group All(Count, D);
      for (uint32_t Round = 0; Round < Rounds; ++Round)
        All.launch(/*Pushes=*/false, Round);
      All.synchronize();
      for (uint32_t Round = 0; Round < Rounds; ++Round)
        ASSERT_TRUE(All.isRight(false, Round)) << Count << " ranks, D = " << D;
    }
}

/// Launches of rows_sent_to_ranks use the two halves of the staged tensors in
/// turn (`mlafix.turn`). Launches of rows_of_ranks in the same group also count
/// as turns, so the test mixes rounds of both kernels: bit `Round` of `Kinds`
/// is 1 if the round launches rows_sent_to_ranks.
TEST(Ranks, send_each_other_rows) {
  MLAFIX_NEEDS_CUDA();
  for (uint32_t Count : {1u, 2u, 3u})
    for (int64_t D : Dims)
      for (unsigned Kinds : {0x3fu, 0x15u, 0x1bu}) {
        Group All(Count, D);
        for (uint32_t Round = 0; Round < Rounds; ++Round)
          All.launch(Kinds >> Round & 1, Round);
        All.synchronize();
        for (uint32_t Round = 0; Round < Rounds; ++Round)
          ASSERT_TRUE(All.isRight(Kinds >> Round & 1, Round))
              << Count << " ranks, D = " << D << ", kinds " << Kinds;
      }
}
