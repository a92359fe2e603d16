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

#include "MergeRun.h"

#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>

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
  std::vector<uint16_t> Payload(ContextRows * H * D, 0x3f80); // 1.0
  std::vector<float> Lses(ContextRows * H, 2.0f);
  Device &On = device();

  TestTensor Out(On, MLAFIX_BF16, Layout::contiguous({N, H, D}));
  TestTensor OutLse(On, MLAFIX_F32, Layout::contiguous({N, H}));
  TestTensor Suffix(On, MLAFIX_BF16, Layout::contiguous({N, H, D}));
  TestTensor SuffixLse(On, MLAFIX_F32, Layout::contiguous({N, H}));

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
        for (TestTensor *Tensor : {&Out, &OutLse, &Suffix, &SuffixLse}) {
          char *Other = static_cast<char *>(Tensor->data());
          Apart = Apart &&
                  (Other + N * H * D * 2 <= First || First + Claimed <= Other);
        }
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
  On.upload(Prefix, Payload.data(), PayloadBytes);
  On.upload(PrefixLse, Lses.data(), LseBytes);

  for (int64_t T = 0; T < N; ++T)
    for (int64_t Head = 0; Head < H; ++Head) {
      SuffixLse.setFloat({T, Head}, 2.0f);
      for (int64_t I = 0; I < D; ++I)
        Suffix.set({T, Head, I}, 0x4040); // 3.0
    }
  for (TestTensor *Tensor : {&Out, &OutLse, &Suffix, &SuffixLse})
    Tensor->upload();
  // Deep checks are off. They would fail, since the prefix and its lse exceed
  // their allocations on purpose.
  kernel("merge_attn_states", H, D, Float::BF16)
      .launch({Out.view(), OutLse.view({1, 0}),
               mlafix::Tensor::contiguous(Prefix, MLAFIX_BF16, {N, H, D},
                                          On.handle()),
               mlafix::Tensor::strided(PrefixLse, MLAFIX_F32, {H, N}, {1, H},
                                       On.handle()),
               Suffix.view(), SuffixLse.view({1, 0}), ContextRows},
              On.handle(), On.stream());
  On.synchronize();
  Out.download();
  for (int64_t T = 0; T < N; ++T)
    for (int64_t Head = 0; Head < H; ++Head)
      for (int64_t I = 0; I < D; ++I) // (1 + 3) / 2 with a prefix, 3 without
        ASSERT_EQ(T < ContextRows ? 0x4000u : 0x4040u, Out.get({T, Head, I}))
            << "token " << T;
}
