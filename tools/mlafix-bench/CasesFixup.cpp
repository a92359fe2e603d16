//===- CasesFixup.cpp - Rows of sequences that had no keys ----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Case.h"
#include "Checks.h"

#include <algorithm>
#include <string>

using namespace mlafix::bench;

namespace {

constexpr int64_t heads = 128, dim = 128;
const char *const bindings = "H=128,D=128,T=bf16";

/// A sequence of `length` tokens. If `isEmptyState` is true, the sequence has
/// no keys.
struct Sequence {
  int64_t length;
  bool isEmptyState;
};

std::vector<Sequence> equalSequences(int64_t count, int64_t length,
                                     bool isEmptyState) {
  return std::vector<Sequence>(count, Sequence{length, isEmptyState});
}

struct Batch {
  std::vector<double> starts = {0}, kvLens;
  std::vector<bool> isEmptyState; ///< one entry per token
  int64_t longest = 0;
  int64_t dead = 0; ///< number of tokens without keys

  explicit Batch(const std::vector<Sequence> &sequences) {
    for (const Sequence &sequence : sequences) {
      kvLens.push_back(sequence.isEmptyState ? 0 : 1000);
      isEmptyState.insert(isEmptyState.end(), sequence.length,
                          sequence.isEmptyState);
      starts.push_back(double(isEmptyState.size()));
      longest = std::max(longest, sequence.length);
      dead += sequence.isEmptyState ? sequence.length : 0;
    }
  }
  int64_t tokens() const { return int64_t(isEmptyState.size()); }
};

struct FixupBuffers {
  View out, lse, kvLens, starts;
};

FixupBuffers addFixupBuffers(Case &work, const Batch &batch) {
  int64_t n = batch.tokens();
  return {work.add(MLAFIX_BF16, {n, heads, dim}, Content::Payload),
          work.add(MLAFIX_F32, {heads, n}, Content::Lse),
          work.add(MLAFIX_I32, {int64_t(batch.kvLens.size())}, Content::Values,
                   batch.kvLens),
          work.add(MLAFIX_I32, {int64_t(batch.starts.size())}, Content::Values,
                   batch.starts)};
}

Case makeFixup(const std::string &name,
               const std::vector<Sequence> &sequences) {
  Batch batch(sequences);
  Case work;
  work.name = name;
  FixupBuffers buffers = addFixupBuffers(work, batch);
  std::vector<Argument> args = {buffers.out, buffers.lse, buffers.kvLens,
                                buffers.starts};
  work.implementations = ours({{"fixup_zero_kv_rows", bindings, args}});
  auto count = int64_t(batch.kvLens.size());
  args.push_back(batch.tokens());
  args.push_back(count);
  // This baseline has one block per sequence and token position. The number of
  // positions is the length of the longest sequence.
  Launch grid = {"fixup_grid_bf16_h128_d128", "", args};
  grid.gridX = uint32_t(batch.longest);
  grid.gridY = uint32_t(count);
  grid.threads = 256;
  // The blocks of this baseline search for the rows without keys. There are at
  // most 1184 blocks, a few per multiprocessor of the largest GPUs.
  Launch scan = {"fixup_scan_bf16_h128_d128", "", args};
  scan.gridX = uint32_t(std::min<int64_t>(batch.tokens(), 1184));
  scan.threads = 256;
  work.addBaseline("cuda, scan", scan);
  // The number of blocks of "cuda, grid" grows with the longest sequence. Leave
  // this baseline out if it would take most of the time of the benchmark.
  if (batch.longest * count <= 8 << 20)
    work.addBaseline("cuda, grid", grid);
  work.traffic = {count * 8 + 4, batch.dead * heads * (dim * 2 + 4)};
  work.hasRoof = batch.dead > 0;
  work.check =
      checkBlank({buffers.out, buffers.lse.transposed(),
                  [batch](int64_t t) { return batch.isEmptyState[t]; }});
  return work;
}

/// The launches of a layer in chunked prefill. The first blanks the chunk's
/// rows without keys. The second merges the chunk with the preceding result.
Case makeChain(int64_t n) {
  constexpr int64_t length = 4;
  std::vector<Sequence> sequences;
  for (int64_t i = 0; i < n / length; ++i)
    sequences.push_back({length, i % 4 == 0});
  Batch batch(sequences);
  Case work;
  work.name = "chain/fixup_merge_h128_d128/n" + std::to_string(n);
  FixupBuffers chunk = addFixupBuffers(work, batch);
  View prefix = work.add(MLAFIX_BF16, {n, heads, dim}, Content::Payload);
  View prefixLse = work.add(MLAFIX_F32, {heads, n}, Content::Lse);
  View out = work.add(MLAFIX_BF16, {n, heads, dim}, Content::Poison);
  View outLse = work.add(MLAFIX_F32, {heads, n}, Content::Poison);
  std::vector<Launch> chain = {
      {"fixup_zero_kv_rows",
       bindings,
       {chunk.out, chunk.lse, chunk.kvLens, chunk.starts}},
      {"merge_attn_states",
       bindings,
       {out, outLse, prefix, prefixLse, chunk.out, chunk.lse, n}}};
  work.implementations = ours(chain);
  int64_t tokenBytes = heads * (dim * 2 + 4);
  work.traffic = {(2 * n - batch.dead) * tokenBytes,
                  (n + batch.dead) * tokenBytes};
  MergeCheck check = {MLAFIX_BF16, out, outLse.transposed()};
  check.inputs = {{prefix, prefixLse.transposed()},
                  {chunk.out, chunk.lse.transposed()}};
  check.isLive = [batch](size_t index, int64_t t) {
    return index == 0 || !batch.isEmptyState[t];
  };
  work.check = checkMerge(check);
  return work;
}

} // namespace

void mlafix::bench::addFixupCases(std::vector<Case> &cases) {
  auto add = [&](const std::string &name,
                 const std::vector<Sequence> &sequences) {
    cases.push_back(makeFixup("fixup/" + name, sequences));
  };
  // One sequence, as in DeepSeek-V3's chunks.
  for (int64_t n : {64, 1024, 8192, 32768})
    add("all_dead_h128_d128/n" + std::to_string(n), equalSequences(1, n, true));
  // One long sequence with keys, and many short ones without.
  std::vector<Sequence> mixed = equalSequences(255, 1, true);
  mixed.insert(mixed.begin(), {16384, false});
  add("short_dead_16384_and_255x1", mixed);
  for (Sequence &sequence : mixed)
    sequence.isEmptyState = false;
  add("none_dead_16384_and_255x1", mixed);
  add("none_dead_256x64", equalSequences(256, 64, false));
  add("none_dead_4096x1", equalSequences(4096, 1, false));
  for (int64_t n : {16, 64, 256, 1024})
    cases.push_back(makeChain(n));
}
