//===- CasesCombine.cpp - Split-KV combines, merges of segments -----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Case.h"
#include "Checks.h"

#include <cmath>
#include <string>

using namespace mlafix::bench;

namespace {

/// Adds the hand-written combines. In the first, a block has a tile of rows and
/// columns. In the second, a block has one row, and its warps share the splits.
void addCombineBaselines(Case &work, std::vector<Argument> args,
                         int64_t numRows, int64_t splits, int64_t dim) {
  constexpr int64_t threads = 128, mostColumns = 128, packSize = 4;
  args.push_back(splits);
  args.push_back(numRows);
  int64_t columns = std::min(dim, mostColumns);
  int64_t tile = threads * packSize / columns;
  std::string shape = "bf16_d" + std::to_string(dim);
  Launch tiles = {"combine_" + shape, "", args};
  tiles.gridX = uint32_t((numRows + tile - 1) / tile);
  tiles.gridY = uint32_t(dim / columns);
  tiles.threads = threads;
  work.addBaselines("cuda", tiles);
  Launch shared = {"combine_shared_" + shape, "", args};
  shared.gridX = uint32_t(numRows);
  shared.threads = 256;
  work.addBaselines("cuda, shared", shared);
}

/// Combines the f32 partials [S, B, 1, H, D] of a split-KV decode to bf16. The
/// lse has FlashAttention's layout: [S, B, H, 1], viewed as [S, B, 1, H].
Case makeCombine(int64_t splits, int64_t batch, int64_t dim) {
  constexpr int64_t heads = 16, length = 1;
  Case work;
  work.name = "combine/f32_s" + std::to_string(splits) + "_" +
              shaped(heads, dim) + "/b" + std::to_string(batch);
  View out =
      work.add(MLAFIX_BF16, {batch, length, heads, dim}, Content::Poison);
  View outLse = work.add(MLAFIX_F32, {batch, length, heads}, Content::Poison);
  View rows = work.add(MLAFIX_F32, {splits, batch, length, heads, dim},
                       Content::Payload);
  View lse = work.add(MLAFIX_F32, {splits, batch, heads, length}, Content::Lse);
  std::swap(lse.sizes[2], lse.sizes[3]);
  std::swap(lse.strides[2], lse.strides[3]);
  std::vector<Argument> args = {out, outLse, rows, lse};
  // As in mlafix.ops, bind the exact number of splits if it is small.
  std::string types = "T=f32,O=bf16";
  if (splits <= 8)
    types += ",s=" + std::to_string(splits);
  work.implementations =
      ours({{"combine_split_kv", bindingsOf(heads, dim, types), args}});
  int64_t numRows = batch * length * heads;
  addCombineBaselines(work, args, numRows, splits, dim);
  work.traffic = {splits * numRows * (dim * 4 + 4), numRows * (dim * 2 + 4)};
  MergeCheck check = {MLAFIX_BF16, out.at(1, 0), outLse.at(1, 0)};
  for (int64_t i = 0; i < splits; ++i)
    check.inputs.push_back({rows.at(0, i).at(1, 0), lse.at(0, i).at(1, 0)});
  work.check = checkMerge(check);
  return work;
}

/// Returns the length of a segment. Lengths 1 to 8 are equally frequent and
/// have no apparent order.
int64_t lengthOf(int64_t segment) {
  return 1 + (uint32_t(segment) * 2654435761u >> 29);
}

/// Returns the index of the first state of each segment, and the number of all
/// states.
std::vector<double> startsOf(int64_t segments) {
  std::vector<double> starts = {0};
  for (int64_t i = 0; i < segments; ++i)
    starts.push_back(starts.back() + double(lengthOf(i)));
  return starts;
}

/// Merges segments of 1 to 8 states. The tensor indptr says where each segment
/// starts.
Case makeRagged(int64_t n, int64_t heads, int64_t dim) {
  constexpr int64_t most = 8;
  Case work;
  work.name =
      "ragged/f16_1to8_" + shaped(heads, dim) + "/n" + std::to_string(n);
  std::vector<double> starts = startsOf(n);
  auto total = int64_t(starts.back());
  View out = work.add(MLAFIX_F16, {n, heads, dim}, Content::Poison);
  View outLse = work.add(MLAFIX_F32, {n, heads}, Content::Poison);
  View rows = work.add(MLAFIX_F16, {total, heads, dim}, Content::Payload);
  View lse = work.add(MLAFIX_F32, {total, heads}, Content::Lse);
  View indptr = work.add(MLAFIX_I32, {n + 1}, Content::Values, starts);
  std::vector<Argument> args = {out, outLse, rows, lse, indptr};
  work.implementations =
      ours({{"merge_states_ragged", bindingsOf(heads, dim, "T=f16"), args}});
  args.push_back(n);
  work.addBaselines("cuda", {"merge_ragged_f16_" + shaped(heads, dim), "", args,
                             n * heads * dim / 8});
  int64_t rowBytes = heads * (dim * 2 + 4);
  work.traffic = {total * rowBytes + (n + 1) * 4, n * rowBytes};
  MergeCheck check = {MLAFIX_F16, out, outLse};
  for (int64_t i = 0; i < most; ++i)
    check.inputs.push_back(
        {rows, lse, [=](int64_t t) { return int64_t(starts[t]) + i; }});
  check.isLive = [starts](size_t index, int64_t t) {
    return double(index) < starts[t + 1] - starts[t];
  };
  work.check = checkMerge(check);
  return work;
}

/// The step of scattered(). It is a prime number, so scattered(count) is a
/// permutation if `count` is not a multiple of the step.
constexpr int64_t kStride = 7919;

std::vector<double> scattered(int64_t count) {
  std::vector<double> order;
  for (int64_t i = 0; i < count; ++i)
    order.push_back(double(i * kStride % count));
  return order;
}

/// Merges segments of 1 to 8 f32 states. Maps say which rows are read and
/// written. The schedulers of split-KV decodes make such maps.
Case makeMapped(int64_t n, int64_t heads, int64_t dim) {
  constexpr int64_t most = 8;
  Case work;
  work.name =
      "mapped/f32_1to8_" + shaped(heads, dim) + "/n" + std::to_string(n);
  std::vector<double> starts = startsOf(n);
  auto total = int64_t(starts.back());
  std::vector<double> partMap = scattered(total), rowMap = scattered(n),
                      groupOf(size_t(n), 0);
  for (int64_t g = 0; g < n; ++g)
    groupOf[size_t(rowMap[g])] = double(g);
  View out = work.add(MLAFIX_BF16, {n, heads, dim}, Content::Poison);
  View outLse = work.add(MLAFIX_F32, {n, heads}, Content::Poison);
  View rows = work.add(MLAFIX_F32, {total, heads, dim}, Content::Payload);
  View lse = work.add(MLAFIX_F32, {total, heads}, Content::Lse);
  View indptr = work.add(MLAFIX_I32, {n + 1}, Content::Values, starts);
  View parts = work.add(MLAFIX_I32, {total}, Content::Values, partMap);
  View places = work.add(MLAFIX_I32, {n}, Content::Values, rowMap);
  work.implementations =
      ours({{"merge_states_mapped",
             bindingsOf(heads, dim,
                        "T=f32,O=bf16,out_lse=present,part_map=present,"
                        "row_map=present,sinks=absent"),
             {out, outLse, rows, lse, indptr, parts, places, Argument(),
              int64_t(0), -INFINITY}}});
  work.traffic = {total * (heads * (dim * 4 + 4) + 4) + (2 * n + 1) * 4,
                  n * heads * (dim * 2 + 4)};
  MergeCheck check = {MLAFIX_BF16, out, outLse};
  for (int64_t i = 0; i < most; ++i)
    check.inputs.push_back({rows, lse, [=](int64_t t) {
                              auto j = int64_t(starts[groupOf[t]]) + i;
                              return j < total ? int64_t(partMap[j]) : 0;
                            }});
  check.isLive = [starts, groupOf](size_t index, int64_t t) {
    auto g = int64_t(groupOf[t]);
    return double(index) < starts[g + 1] - starts[g];
  };
  work.check = checkMerge(check);
  return work;
}

} // namespace

void mlafix::bench::addCombineCases(std::vector<Case> &cases) {
  auto add = [&](int64_t dim, std::initializer_list<int64_t> splits,
                 std::initializer_list<int64_t> batches) {
    for (int64_t s : splits)
      for (int64_t b : batches)
        cases.push_back(makeCombine(s, b, dim));
  };
  add(64, {8, 32}, {8, 64});
  add(128, {2, 8, 32, 128}, {1, 8, 64, 256});
  add(512, {8, 32}, {1, 8, 64, 256});
  add(512, {128}, {1, 8});
  cases.push_back(makeRagged(1000, 64, 128));
  for (int64_t dim : {128, 512})
    cases.push_back(makeMapped(1000, 16, dim));
}
