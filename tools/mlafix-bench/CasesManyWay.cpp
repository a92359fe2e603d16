//===- CasesManyWay.cpp - Merges of more than two states ------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Case.h"
#include "Checks.h"

#include <functional>
#include <string>

using namespace mlafix::bench;

namespace {

std::string baselineName(const char *form, int64_t ways, int64_t heads,
                         int64_t dim) {
  return std::string("merge_") + form + "_k" + std::to_string(ways) + "_bf16_" +
         shaped(heads, dim);
}

/// Returns the traffic of a merge of `ways` states. Each state, and the result,
/// has n x H x D elements of bf16 and n x H lses.
Traffic trafficOf(int64_t n, int64_t heads, int64_t dim, int64_t ways) {
  int64_t bytes = n * heads * (dim * 2 + 4);
  return {ways * bytes, bytes};
}

/// Returns the bindings of merge_states_list for exactly `ways` states and an
/// lse as result.
std::string exactly(int64_t ways) {
  std::string text = ",out_lse=present";
  for (int64_t i = 1; i < 8; ++i)
    for (const char *kind : {",v", ",s"})
      text += kind + std::to_string(i) + (i < ways ? "=present" : "=absent");
  return text;
}

/// A function that returns the launch to merge two states into a third.
using MergeTwo = std::function<Launch(const States &result, const States &left,
                                      const States &right)>;

/// Returns a chain of merges: the first two inputs into `result`, then each
/// further input into `result`, as engines do today. If `result` is the first
/// input, the chain is in place. Each replay then merges the other inputs into
/// `result` once more. This does no harm, since the payload of `result` stays a
/// mean of the inputs, and its lse grows only with the logarithm of the number
/// of replays.
std::vector<Launch> chain(const std::vector<States> &inputs,
                          const States &result, const MergeTwo &mergeTwo) {
  std::vector<Launch> launches;
  for (size_t i = 1; i < inputs.size(); ++i)
    launches.push_back(
        mergeTwo(result, i == 1 ? inputs[0] : result, inputs[i]));
  return launches;
}

Launch mergePair(const States &result, const States &left,
                 const States &right) {
  const std::vector<int64_t> &sizes = result.rows.sizes;
  return {"merge_attn_states",
          bindingsOf(sizes[1], sizes[2]),
          {result.rows, result.lse.transposed(), left.rows,
           left.lse.transposed(), right.rows, right.lse.transposed(),
           sizes[0]}};
}

Launch mergeInto(const States &result, const States &, const States &right) {
  const std::vector<int64_t> &sizes = result.rows.sizes;
  return {"merge_state_in_place",
          bindingsOf(sizes[1], sizes[2]) + ",mask=absent",
          {result.rows, result.lse, right.rows, right.lse, Argument()}};
}

/// Returns a function that launches the hand-written merge of contiguous
/// tensors.
MergeTwo baselineMerge(bool isDependent) {
  return [=](const States &result, const States &left,
             const States &right) -> Launch {
    const std::vector<int64_t> &sizes = result.rows.sizes;
    return {"merge_bf16_" + shaped(sizes[1], sizes[2]) + "_rows_first" +
                (isDependent ? "_dependent" : ""),
            "",
            {result.rows, result.lse, left.rows, left.lse, right.rows,
             right.lse, sizes[0], sizes[0]},
            sizes[0] * sizes[1] * sizes[2] / 8};
  };
}

/// Adds the chains of two-way merges of `inputs`: one into `result`, and one in
/// place into the first input.
void addPairs(Case &work, const std::vector<States> &inputs,
              const States &result, bool isBaseline = false) {
  int between = int(inputs.size()) - 2;
  Check inPlace =
      checkMerge({MLAFIX_BF16, inputs[0].rows, inputs[0].lse, inputs});
  for (bool isDependent : {false, true}) {
    std::string prefix = isBaseline ? "cuda, pairs" : "pairs",
                how = isDependent ? ", dependent" : "",
                against = "mlafix" + how;
    MergeTwo baseline = baselineMerge(isDependent);
    work.implementations.push_back(
        {prefix + how, isBaseline, isDependent, against,
         chain(inputs, result, isBaseline ? baseline : mergePair), between});
    work.implementations.push_back(
        {prefix + ", in place" + how, isBaseline, isDependent, against,
         chain(inputs, inputs[0], isBaseline ? baseline : mergeInto), between,
         inPlace});
  }
}

/// Merges K (`ways`) separate states in one launch. mlafix's code is for up to
/// eight states if `isOpen` is true, and for exactly K otherwise.
Case makeList(int64_t ways, int64_t n, bool isOpen = false) {
  constexpr int64_t heads = 128, dim = 128, slots = 8;
  Case work;
  work.name = std::string(isOpen ? "n_way/list_open_k" : "n_way/list_k") +
              std::to_string(ways) + "_h128_d128/n" + std::to_string(n);
  View out = work.add(MLAFIX_BF16, {n, heads, dim}, Content::Poison);
  View outLse = work.add(MLAFIX_F32, {n, heads}, Content::Poison);
  std::vector<Argument> args = {out, outLse};
  std::vector<States> inputs;
  for (int64_t i = 0; i < ways; ++i) {
    inputs.push_back({work.add(MLAFIX_BF16, {n, heads, dim}, Content::Payload),
                      work.add(MLAFIX_F32, {n, heads}, Content::Lse)});
    args.push_back(inputs.back().rows);
    args.push_back(inputs.back().lse);
  }
  std::vector<Argument> baselineArgs = args;
  baselineArgs.push_back(n);
  args.resize(2 + 2 * slots); // omit the states after the K-th
  work.implementations =
      ours({{"merge_states_list",
             bindingsOf(heads, dim) + (isOpen ? "" : exactly(ways)), args}});
  if (!isOpen) {
    addPairs(work, inputs, {out, outLse});
    addPairs(work, inputs, {out, outLse}, /*isBaseline=*/true);
  }
  work.addBaseline("cuda", {baselineName("list", ways, heads, dim), "",
                            baselineArgs, n * heads * dim / 8});
  work.traffic = trafficOf(n, heads, dim, ways);
  work.check = checkMerge({MLAFIX_BF16, out, outLse, inputs});
  return work;
}

/// Merges the K (`ways`) states of one tensor [n, K, H, D].
Case makeDense(const std::string &name, int64_t ways, int64_t n, int64_t heads,
               int64_t dim, bool hasPairs) {
  Case work;
  work.name = name;
  View out = work.add(MLAFIX_BF16, {n, heads, dim}, Content::Poison);
  View outLse = work.add(MLAFIX_F32, {n, heads}, Content::Poison);
  View rows = work.add(MLAFIX_BF16, {n, ways, heads, dim}, Content::Payload);
  View lse = work.add(MLAFIX_F32, {n, ways, heads}, Content::Lse);
  std::vector<States> inputs;
  for (int64_t i = 0; i < ways; ++i)
    inputs.push_back({rows.at(1, i), lse.at(1, i)});
  work.implementations = ours(
      {{"merge_states", bindingsOf(heads, dim), {out, outLse, rows, lse}}});
  if (hasPairs)
    addPairs(work, inputs, {out, outLse});
  work.addBaseline("cuda", {baselineName("dense", ways, heads, dim),
                            "",
                            {out, outLse, rows, lse, n},
                            n * heads * dim / 8});
  work.traffic = trafficOf(n, heads, dim, ways);
  work.check = checkMerge({MLAFIX_BF16, out, outLse, inputs});
  return work;
}

} // namespace

void mlafix::bench::addManyWayCases(std::vector<Case> &cases) {
  for (int64_t ways : {4, 8})
    for (int64_t n : {16, 64, 256, 1024, 8192})
      cases.push_back(makeList(ways, n));
  cases.push_back(makeList(4, 1024, /*isOpen=*/true));
  for (int64_t n : {64, 1024})
    cases.push_back(makeDense("n_way/dense_k4_h128_d128/n" + std::to_string(n),
                              4, n, 128, 128, true));
  // The shape of a cascade in FlashInfer with a hundred splits.
  cases.push_back(makeDense("n_way/cascade_k100_h32_d128/n2048", 100, 2048, 32,
                            128, false));
}
