//===- CasesMerge.cpp - Merges of two states ------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Case.h"
#include "Checks.h"

#include <string>

using namespace mlafix::bench;

namespace {

/// The destination of a merge: separate tensors, or the tensors of the suffix.
enum class Place { Separate, OverSuffix };

struct MergeShape {
  std::string name;
  mlafix_dtype type;
  int64_t n, heads, dim;
  bool isRowsFirst = false; ///< true: the lse is [n, H]; false: [H, n]
  int64_t contextRows = -1; ///< number of rows with a prefix; -1: all
  Place place = Place::Separate;
  bool isFp8 = false;     ///< true: the result is fp8, with a scale
  int64_t headStride = 0; ///< head stride of the prefix; 0: equal to `dim`

  mlafix_dtype outType() const { return isFp8 ? MLAFIX_F8E4M3FN : type; }
};

constexpr double fp8Scale = 0.25;

/// Returns the name of a baseline, which is compiled for one shape:
/// "merge_bf16_h128_d128".
std::string baselineName(const MergeShape &shape) {
  return std::string(shape.isFp8 ? "merge_fp8_" : "merge_") +
         mlafix_dtype_name(shape.type) + "_" + shaped(shape.heads, shape.dim) +
         (shape.isRowsFirst ? "_rows_first" : "");
}

/// The tensors of a merge, and the number of its rows that have a prefix.
struct Merge {
  View prefix, prefixLse, suffix, suffixLse, out;
  Argument outLse; // omitted if the result is fp8 and not in place
  int64_t contextRows;
};

Merge addTensors(Case &work, const MergeShape &shape) {
  int64_t n = shape.n, heads = shape.heads, dim = shape.dim;
  Merge merge;
  merge.contextRows = shape.contextRows < 0 ? n : shape.contextRows;
  auto addLse = [&](Content content) {
    // The kernel expects the lse as [H, n].
    return shape.isRowsFirst
               ? work.add(MLAFIX_F32, {n, heads}, content).transposed()
               : work.add(MLAFIX_F32, {heads, n}, content);
  };
  int64_t headStride = shape.headStride ? shape.headStride : dim;
  merge.prefix = work.add(shape.type, {n, heads, headStride}, Content::Payload);
  merge.prefix.sizes[2] = dim;
  merge.prefixLse = addLse(Content::Lse);
  merge.suffix = work.add(shape.type, {n, heads, dim}, Content::Payload);
  merge.suffixLse = addLse(Content::Lse);
  bool isInPlace = shape.place == Place::OverSuffix;
  merge.out = isInPlace
                  ? merge.suffix
                  : work.add(shape.outType(), {n, heads, dim}, Content::Poison);
  if (isInPlace)
    merge.outLse = merge.suffixLse;
  else if (!shape.isFp8)
    merge.outLse = addLse(Content::Poison);
  return merge;
}

/// Adds the launches of mlafix's kernel and of the baselines.
void addLaunches(Case &work, const MergeShape &shape, const Merge &merge) {
  std::vector<Argument> args = {merge.out, merge.outLse};
  if (shape.isFp8)
    args.push_back(work.add(MLAFIX_F32, {1}, Content::Values, {fp8Scale}));
  for (const View &view :
       {merge.prefix, merge.prefixLse, merge.suffix, merge.suffixLse})
    args.push_back(view);
  args.push_back(merge.contextRows);
  std::vector<Argument> baselineArgs = args;
  baselineArgs.back() = shape.n;
  baselineArgs.push_back(merge.contextRows);

  work.implementations =
      ours({{shape.isFp8 ? "merge_attn_states_fp8" : "merge_attn_states",
             bindingsOf(shape.heads, shape.dim,
                        std::string("T=") + mlafix_dtype_name(shape.type)),
             args}});
  Launch baseline = {baselineName(shape), "", baselineArgs};
  int64_t width = mlafix_dtype_size(shape.type);
  baseline.items = shape.n * shape.heads * shape.dim * width / 16;
  if (shape.headStride)
    return; // baselines need contiguous rows
  work.addBaselines("cuda", baseline);
  baseline.function += "_lse_first";
  work.addBaseline("cuda, lse first", baseline, "mlafix, dependent");
}

Case makeMerge(const MergeShape &shape) {
  Case work;
  work.name = shape.name;
  Merge merge = addTensors(work, shape);
  addLaunches(work, shape, merge);

  bool hasLse = merge.outLse.kind == Argument::Tensor;
  int64_t elements = shape.heads * shape.dim, lseBytes = shape.heads * 4;
  int64_t rowBytes = elements * mlafix_dtype_size(shape.type);
  // A merge in place does not touch rows without a prefix.
  int64_t rows = shape.place == Place::OverSuffix ? merge.contextRows : shape.n;
  work.traffic.read = (merge.contextRows + rows) * (rowBytes + lseBytes);
  work.traffic.written =
      rows * (elements * int64_t(mlafix_dtype_size(shape.outType())) +
              (hasLse ? lseBytes : 0));

  MergeCheck check = {shape.outType(), merge.out};
  if (hasLse)
    check.lse = merge.outLse.view.transposed();
  check.inputs = {{merge.prefix, merge.prefixLse.transposed()},
                  {merge.suffix, merge.suffixLse.transposed()}};
  check.isLive = [contextRows = merge.contextRows](size_t index, int64_t t) {
    return index == 1 || t < contextRows;
  };
  check.scale = shape.isFp8 ? fp8Scale : 1;
  work.check = checkMerge(check);
  return work;
}

/// Returns the number of tokens for a merge that moves at least 128 MB. `width`
/// is the bytes per element.
int64_t tokensOfLargeMerge(int64_t heads, int64_t dim, int64_t width) {
  int64_t bytes = 3 * heads * (dim * width + 4);
  return (int64_t(128'000'000) / bytes + 64) / 64 * 64;
}

std::string sized(const std::string &group, int64_t n) {
  return group + "/n" + std::to_string(n);
}

} // namespace

using Add = std::function<void(const MergeShape &)>;

/// Adds merges that are out of place and in which every token has a prefix.
static void addPlainMerges(const Add &add) {
  // DeepSeek-V3 on one GPU.
  for (int64_t n : {16, 64, 256, 1024, 4096, 8192})
    add({sized("merge/bf16_h128_d128", n), MLAFIX_BF16, n, 128, 128});
  // DeepSeek-R1 on eight GPUs.
  for (int64_t n : {16, 64, 256, 512, 613, 1024, 1536, 4096})
    add({sized("merge/r1_tp8_h16_d128", n), MLAFIX_BF16, n, 16, 128});
  // Large merges by number of heads, and by head dim.
  for (int64_t heads : {6, 16, 32, 64, 96}) {
    int64_t n = tokensOfLargeMerge(heads, 128, 2);
    add({sized("merge/heads_" + shaped(heads, 128), n), MLAFIX_BF16, n, heads,
         128});
  }
  for (int64_t dim : {64, 96, 192, 256, 512}) {
    int64_t n = tokensOfLargeMerge(16, dim, 2);
    add({sized("merge/dims_" + shaped(16, dim), n), MLAFIX_BF16, n, 16, dim});
  }
  for (int64_t n : {256, 4096}) {
    MergeShape shape = {sized("merge/lse_rows_first_h128_d128", n), MLAFIX_BF16,
                        n, 128, 128};
    shape.isRowsFirst = true;
    add(shape);
  }
  for (mlafix_dtype type : {MLAFIX_F16, MLAFIX_F32}) {
    int64_t n = 4096;
    add({sized(std::string("merge/") + mlafix_dtype_name(type) + "_h128_d128",
               n),
         type, n, 128, 128});
  }
  // Kimi-K3 on one and on sixteen GPUs, and Kimi K2.6. The prefix of Kimi K2.6
  // has a larger head stride.
  add({"merge/kimi_k3_h96_d512/n16384", MLAFIX_BF16, 16384, 96, 512});
  add({"merge/kimi_k3_tp16_h6_d512/n16384", MLAFIX_BF16, 16384, 6, 512});
  MergeShape strided = {"merge/kimi_k26_head_stride_192/n4096", MLAFIX_BF16,
                        4096, 128, 128};
  strided.headStride = 192;
  add(strided);
}

/// Adds merges in place, merges in which some rows have no prefix, and merges
/// with an fp8 result.
static void addSpecialMerges(const Add &add) {
  for (int64_t n : {16, 64, 1024, 4096, 8192}) {
    MergeShape shape = {sized("in_place/bf16_h128_d128", n), MLAFIX_BF16, n,
                        128, 128};
    shape.place = Place::OverSuffix;
    add(shape);
  }
  // Half of the rows have a prefix.
  for (int64_t n : {1024, 4096, 8192}) {
    MergeShape shape = {sized("threshold/half_h128_d128", n), MLAFIX_BF16, n,
                        128, 128};
    shape.contextRows = n / 2;
    add(shape);
    shape.name = sized("threshold/half_in_place_h128_d128", n);
    shape.place = Place::OverSuffix;
    add(shape);
  }
  for (int64_t heads : {128, 64, 32})
    for (int64_t n : {1, 64, 1024, 4096}) {
      MergeShape shape = {sized("merge_fp8/bf16_" + shaped(heads, 128), n),
                          MLAFIX_BF16, n, heads, 128};
      shape.isFp8 = true;
      add(shape);
    }
}

void mlafix::bench::addMergeCases(std::vector<Case> &cases) {
  auto add = [&](const MergeShape &shape) {
    cases.push_back(makeMerge(shape));
  };
  addPlainMerges(add);
  addSpecialMerges(add);
}
