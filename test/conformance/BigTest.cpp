//===- BigTest.cpp - tensors whose offsets do not fit in 32 bits ----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Tests that offsets are 64-bit (N13 of docs/Dialect.md), with inputs as large
// as engines pass: up to 270000 tokens of 128 heads of 128 elements. The
// contents of the tokens repeat with a prime period. All tokens (8.8 GB in
// total) are compared with those of a small launch, bit for bit (N9).
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

using namespace conformance;

namespace {

constexpr int64_t H = 128, D = 128;
constexpr size_t RowBytes = H * D * 2;
/// The number of tokens after which the contents repeat. It is odd, so that the
/// contents never repeat at the powers of two where offsets wrap.
constexpr int64_t Period = 1009;

/// Fills \p Rows tokens on the device with copies of the first period. Each
/// copy doubles the filled part.
void repeatPeriod(char *Data, size_t BytesPerRow, int64_t Rows) {
  for (int64_t Done = Period; Done < Rows;) {
    int64_t Count = std::min(Done, Rows - Done);
    device().copyOnDevice(Data + Done * BytesPerRow, Data, Count * BytesPerRow);
    Done += Count;
  }
}

std::vector<uint16_t> randomPayload(uint64_t Seed) {
  std::vector<uint16_t> Values(Period * H * D);
  Random R(Seed);
  for (uint16_t &Value : Values)
    Value = R.bf16();
  return Values;
}

/// Returns the log-sum-exps of one period, [Period, H]. Some states are empty.
std::vector<float> randomLse(uint64_t Seed) {
  std::vector<float> Values(Period * H);
  Random R(Seed);
  for (float &Value : Values) {
    uint64_t Choice = R.below(16);
    Value = Choice == 0   ? -INFINITY
            : Choice == 1 ? INFINITY
                          : float(R.below(160)) / 8;
  }
  return Values;
}

struct BigState {
  Memory Payload, Lse;
  std::vector<uint16_t> PayloadPeriod;
  std::vector<float> LsePeriod;

  BigState(int64_t Rows, uint64_t Seed)
      : Payload(device(), Rows * RowBytes), Lse(device(), Rows * H * 4),
        PayloadPeriod(randomPayload(Seed)), LsePeriod(randomLse(Seed + 1)) {
    device().upload(Payload.data(), PayloadPeriod.data(),
                    PayloadPeriod.size() * 2);
    device().upload(Lse.data(), LsePeriod.data(), LsePeriod.size() * 4);
    repeatPeriod(Payload.data(), RowBytes, Rows);
    repeatPeriod(Lse.data(), H * 4, Rows);
  }
};

/// Compares each row on the device with Expected(index of the row), chunk by
/// chunk. Returns the index of the first row that differs, or -1 if none does.
int64_t firstWrongRow(const char *Data, size_t BytesPerRow, int64_t Rows,
                      const std::function<const char *(int64_t)> &Expected) {
  constexpr int64_t Chunk = 8192;
  std::vector<char> Host(Chunk * BytesPerRow);
  for (int64_t Begin = 0; Begin < Rows; Begin += Chunk) {
    int64_t Count = std::min(Chunk, Rows - Begin);
    device().download(Host.data(), Data + Begin * BytesPerRow,
                      Count * BytesPerRow);
    for (int64_t I = 0; I < Count; ++I)
      if (std::memcmp(&Host[I * BytesPerRow], Expected(Begin + I), BytesPerRow))
        return Begin + I;
  }
  return -1;
}

void needsMemory(size_t Bytes, bool &Enough) {
  Enough = device().freeBytes() > Bytes + (size_t(1) << 30);
}

mlafix::Tensor payload(const Memory &M, int64_t Rows) {
  return tensor(M, MLAFIX_BF16, {Rows, H, D});
}

} // namespace

// int32 offsets overflow at 131072 x 128 x 128 (vLLM #45500).
TEST(Big, merge_of_270000_x_128_x_128_in_a_graph) {
  MLAFIX_NEEDS_CUDA();
  constexpr int64_t Rows = 270000;
  bool Enough;
  needsMemory(3 * Rows * (RowBytes + H * 4), Enough);
  if (!Enough)
    GTEST_SKIP() << "needs 27 GB of device memory";
  BigState Prefix(Rows, 1), Suffix(Rows, 2);
  Memory Out(device(), Rows * RowBytes), OutLse(device(), Rows * H * 4);
  mlafix::Kernel Code = kernel("merge_attn_states", H, D);
  auto Merge = [&](int64_t Count) {
    auto Lse = [&](const Memory &M) { return lseOfTokens(M.data(), Count, H); };
    Code.launch({payload(Out, Count), Lse(OutLse),
                 payload(Prefix.Payload, Count), Lse(Prefix.Lse),
                 payload(Suffix.Payload, Count), Lse(Suffix.Lse), Count},
                device().handle(), device().stream(), LaunchFlags);
  };
  Merge(Period);
  device().synchronize();
  std::vector<uint16_t> First(Period * H * D);
  std::vector<float> FirstLse(Period * H);
  device().download(First.data(), Out.data(), First.size() * 2);
  device().download(FirstLse.data(), OutLse.data(), FirstLse.size() * 4);

  auto Captured = device().capture([&] { Merge(Rows); });
  device().fill(Out.data(), 0xff, Rows * RowBytes);
  device().fill(OutLse.data(), 0xff, Rows * H * 4);
  Captured->replay();
  EXPECT_EQ(-1, firstWrongRow(Out.data(), RowBytes, Rows, [&](int64_t T) {
    return reinterpret_cast<const char *>(&First[T % Period * H * D]);
  }));
  EXPECT_EQ(-1, firstWrongRow(OutLse.data(), H * 4, Rows, [&](int64_t T) {
    return reinterpret_cast<const char *>(&FirstLse[T % Period * H]);
  }));
}

// SGLang's own kernel makes an illegal memory access for this size.
TEST(Big, fixup_of_140000_x_128_x_128_in_a_graph) {
  MLAFIX_NEEDS_CUDA();
  constexpr int64_t Rows = 140000;
  bool Enough;
  needsMemory(Rows * (RowBytes + H * 4), Enough);
  if (!Enough)
    GTEST_SKIP() << "needs 5 GB of device memory";
  BigState State(Rows, 3);
  // Offset 2^31 is that of token 131072. The closest segments without keys end
  // before token 131071 and begin at token 131073. A long segment with keys
  // precedes them.
  std::vector<int32_t> Cu = {0, 100, 131000, 131071, 131073, 139000, 140000};
  std::vector<int32_t> KvLens = {0, 5, 0, 3, 0, 1};
  Memory DeviceCu(device(), Cu.size() * 4),
      DeviceLens(device(), KvLens.size() * 4);
  device().upload(DeviceCu.data(), Cu.data(), Cu.size() * 4);
  mlafix::Kernel Code = kernel("fixup_zero_kv_rows", H, D);
  auto Captured = device().capture([&] {
    Code.launch({payload(State.Payload, Rows),
                 lseOfTokens(State.Lse.data(), Rows, H),
                 tensor(DeviceLens, MLAFIX_I32, {int64_t(KvLens.size())}),
                 tensor(DeviceCu, MLAFIX_I32, {int64_t(Cu.size())})},
                device().handle(), device().stream(), LaunchFlags);
  });
  // The lengths change between capture and replay.
  device().upload(DeviceLens.data(), KvLens.data(), KvLens.size() * 4);
  Captured->replay();

  std::vector<bool> Dead(Rows);
  for (size_t I = 0; I < KvLens.size(); ++I)
    std::fill(Dead.begin() + Cu[I], Dead.begin() + Cu[I + 1], !KvLens[I]);
  std::vector<uint16_t> Zero(H * D, 0);
  std::vector<float> Empty(H, -INFINITY);
  EXPECT_EQ(
      -1, firstWrongRow(State.Payload.data(), RowBytes, Rows, [&](int64_t T) {
        return reinterpret_cast<const char *>(
            Dead[T] ? Zero.data() : &State.PayloadPeriod[T % Period * H * D]);
      }));
  EXPECT_EQ(-1, firstWrongRow(State.Lse.data(), H * 4, Rows, [&](int64_t T) {
    return reinterpret_cast<const char *>(
        Dead[T] ? Empty.data() : &State.LsePeriod[T % Period * H]);
  }));
}
