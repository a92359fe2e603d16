//===- MergeUnmappedTest.cpp - merge: excluded rows are not read ----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Tests N5: a row that a predicate excludes is not read at all. On the CPU, the
// prefix rows past the threshold are in inaccessible pages. On CUDA, they are
// past the end of a large allocation. An access there faults if nothing is
// mapped; otherwise compute-sanitizer reports it.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

using namespace conformance;

namespace {

/// Readable pages, followed by inaccessible pages.
class HalfMapped {
public:
  explicit HalfMapped(size_t Usable) {
    size_t Page = sysconf(_SC_PAGESIZE);
    UsableBytes = (Usable + Page - 1) / Page * Page;
    Bytes = UsableBytes + (size_t(1) << 24);
    Base = static_cast<char *>(
        mmap(nullptr, Bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (Base == MAP_FAILED ||
        mprotect(Base, UsableBytes, PROT_READ | PROT_WRITE))
      throw std::bad_alloc();
  }
  ~HalfMapped() { munmap(Base, Bytes); }
  /// Returns the last \p Size accessible bytes. The byte after them faults.
  char *last(size_t Size) { return Base + UsableBytes - Size; }

private:
  size_t UsableBytes, Bytes;
  char *Base;
};

} // namespace

TEST(Merge, rows_past_the_threshold_are_not_read) {
  constexpr int64_t N = 40, H = 16, D = 128, ContextRows = 13;
  constexpr size_t PayloadBytes = ContextRows * H * D * 2;
  // The lse is [n, H] in memory, so that the lses of excluded rows also lie
  // past the end of the memory that may be read.
  constexpr size_t LseBytes = ContextRows * H * 4;
  Device &On = device();

  Memory Out(On, N * H * D * 2), OutLse(On, N * H * 4);
  Memory Suffix(On, N * H * D * 2), SuffixLse(On, N * H * 4);

  std::unique_ptr<HalfMapped> PayloadPages, LsePages;
  std::vector<Memory> Regions;
  char *Prefix, *PrefixLse;
  if (On.isCuda()) {
    // The memory after an allocation may belong to another tensor of the call.
    // The runtime would refuse this overlap, so another region is tried.
    auto EndOfRegion = [&](size_t Bytes, size_t Claimed) {
      constexpr size_t RegionBytes = size_t(64) << 20;
      for (int Try = 0; Try < 8; ++Try) {
        Regions.emplace_back(On, RegionBytes);
        char *First = Regions.back().data() + RegionBytes - Bytes;
        bool Apart = true;
        for (Memory *Tensor : {&Out, &OutLse, &Suffix, &SuffixLse})
          Apart = Apart && (Tensor->data() + N * H * D * 2 <= First ||
                            First + Claimed <= Tensor->data());
        if (Apart)
          return First;
      }
      throw std::runtime_error("expected room past an allocation, got none");
    };
    Prefix = EndOfRegion(PayloadBytes, N * H * D * 2);
    PrefixLse = EndOfRegion(LseBytes, N * H * 4);
  } else {
    PayloadPages = std::make_unique<HalfMapped>(PayloadBytes);
    LsePages = std::make_unique<HalfMapped>(LseBytes);
    Prefix = PayloadPages->last(PayloadBytes);
    PrefixLse = LsePages->last(LseBytes);
  }
  auto Fill = [&](char *Payload, char *Lse, int64_t Rows, uint16_t Bits) {
    std::vector<uint16_t> Elements(Rows * H * D, Bits);
    std::vector<float> Lses(Rows * H, 2.0f);
    On.upload(Payload, Elements.data(), 2 * Elements.size());
    On.upload(Lse, Lses.data(), 4 * Lses.size());
  };
  Fill(Prefix, PrefixLse, ContextRows, 0x3f80);     // 1.0
  Fill(Suffix.data(), SuffixLse.data(), N, 0x4040); // 3.0
  On.fill(Out.data(), 0xff, N * H * D * 2);
  // Deep checks are off. They would fail, since the prefix and its lse exceed
  // their allocations on purpose.
  kernel("merge_attn_states", H, D)
      .launch({tensor(Out, MLAFIX_BF16, {N, H, D}),
               lseOfTokens(OutLse.data(), N, H),
               mlafix::Tensor::contiguous(Prefix, MLAFIX_BF16, {N, H, D},
                                          On.handle()),
               lseOfTokens(PrefixLse, N, H),
               tensor(Suffix, MLAFIX_BF16, {N, H, D}),
               lseOfTokens(SuffixLse.data(), N, H), ContextRows},
              On.handle(), On.stream());
  On.synchronize();
  std::vector<uint16_t> Merged(N * H * D);
  On.download(Merged.data(), Out.data(), 2 * Merged.size());
  for (int64_t I = 0; I < N * H * D; ++I) // (1 + 3) / 2 with a prefix, else 3
    ASSERT_EQ(I < ContextRows * H * D ? 0x4000 : 0x4040, Merged[I])
        << "token " << I / (H * D);
}
