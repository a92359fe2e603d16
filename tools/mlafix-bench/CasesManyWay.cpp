//===- CasesManyWay.cpp - Merges of more than two states ------------------===//
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

std::string bindings(int64_t heads, int64_t dim, const char *type,
                     const char *outType = nullptr) {
  std::string text =
      "H=" + std::to_string(heads) + ",D=" + std::to_string(dim) + ",T=" + type;
  return outType ? text + ",O=" + outType : text;
}

std::string rivalName(const char *form, int64_t ways, int64_t heads,
                      int64_t dim) {
  return std::string("merge_") + form + "_k" + std::to_string(ways) +
         "_bf16_h" + std::to_string(heads) + "_d" + std::to_string(dim);
}

/// n x H x D in bf16, and n x H, of each of the inputs and of the output.
Traffic trafficOf(int64_t n, int64_t heads, int64_t dim, int64_t ways) {
  int64_t bytes = n * heads * (dim * 2 + 4);
  return {ways * bytes, bytes};
}

Check checkOf(View out, View outLse, std::vector<States> inputs,
              mlafix_dtype type) {
  MergeCheck check;
  check.type = type;
  check.rows = out;
  check.lse = outLse;
  check.inputs = std::move(inputs);
  return [check](const Outcome &outcome) { return checkMerge(outcome, check); };
}

/// out = 0 (+) 1, out = out (+) 2, ...: what engines do today.
std::vector<Launch> chainOfPairs(const std::vector<States> &inputs,
                                 const View &out, const View &outLse) {
  std::vector<Launch> launches;
  int64_t n = out.sizes[0];
  for (size_t i = 1; i < inputs.size(); ++i) {
    const States left = i == 1 ? inputs[0] : States{out, outLse};
    launches.push_back(
        {"merge_attn_states",
         bindings(out.sizes[1], out.sizes[2], "bf16"),
         {out, outLse.transposed(), left.rows, left.lse.transposed(),
          inputs[i].rows, inputs[i].lse.transposed(), n}});
  }
  return launches;
}

void addContenders(Case &work, const Launch &ours,
                   const std::vector<Launch> &pairs,
                   const std::string &rivalFunction,
                   std::vector<Argument> rivalArgs, int64_t items) {
  work.contenders = {{"mlafix", false, false, "", {ours}},
                     {"mlafix, dependent", false, true, "", {ours}}};
  if (!pairs.empty()) {
    int between = int(pairs.size()) - 1;
    work.contenders.push_back(
        {"pairs", false, false, "mlafix", pairs, between});
    work.contenders.push_back(
        {"pairs, dependent", false, true, "mlafix, dependent", pairs, between});
  }
  Launch rival = {rivalFunction, "", std::move(rivalArgs), items};
  work.contenders.push_back({"cuda", true, false, "mlafix", {rival}});
}

/// K buffers of their own, in one launch.
Case makeList(int64_t ways, int64_t n) {
  constexpr int64_t heads = 128, dim = 128, slots = 8;
  Case work;
  work.name = "n_way/list_k" + std::to_string(ways) + "_h128_d128/n" +
              std::to_string(n);
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
  std::vector<Argument> rivalArgs = args;
  rivalArgs.push_back(n);
  args.resize(2 + 2 * slots); // the rest is left out
  addContenders(work, {"merge_states_list", bindings(heads, dim, "bf16"), args},
                chainOfPairs(inputs, out, outLse),
                rivalName("list", ways, heads, dim), rivalArgs,
                n * heads * dim / 8);
  work.traffic = trafficOf(n, heads, dim, ways);
  work.check = checkOf(out, outLse, inputs, MLAFIX_BF16);
  return work;
}

/// [n, K, H, D], as one tensor.
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
  addContenders(
      work,
      {"merge_states", bindings(heads, dim, "bf16"), {out, outLse, rows, lse}},
      hasPairs ? chainOfPairs(inputs, out, outLse) : std::vector<Launch>(),
      rivalName("dense", ways, heads, dim), {out, outLse, rows, lse, n},
      n * heads * dim / 8);
  work.traffic = trafficOf(n, heads, dim, ways);
  work.check = checkOf(out, outLse, inputs, MLAFIX_BF16);
  return work;
}

/// Four states a token, one after the other, found through indptr.
Case makeRagged(int64_t n) {
  constexpr int64_t heads = 128, dim = 128, ways = 4;
  Case work;
  work.name = "n_way/ragged_k4_h128_d128/n" + std::to_string(n);
  View out = work.add(MLAFIX_BF16, {n, heads, dim}, Content::Poison);
  View outLse = work.add(MLAFIX_F32, {n, heads}, Content::Poison);
  View rows = work.add(MLAFIX_BF16, {n * ways, heads, dim}, Content::Payload);
  View lse = work.add(MLAFIX_F32, {n * ways, heads}, Content::Lse);
  std::vector<double> starts;
  for (int64_t t = 0; t <= n; ++t)
    starts.push_back(double(t * ways));
  View indptr = work.add(MLAFIX_I32, {n + 1}, Content::Values, starts);
  std::vector<States> inputs;
  for (int64_t i = 0; i < ways; ++i) {
    auto everyWayth = [&](View view) {
      view.offset = i * view.strides[0];
      view.sizes[0] = n;
      view.strides[0] *= ways;
      return view;
    };
    inputs.push_back({everyWayth(rows), everyWayth(lse)});
  }
  work.contenders = {{"mlafix",
                      false,
                      false,
                      "",
                      {{"merge_states_ragged",
                        bindings(heads, dim, "bf16"),
                        {out, outLse, rows, lse, indptr}}}}};
  work.traffic = trafficOf(n, heads, dim, ways);
  work.check = checkOf(out, outLse, inputs, MLAFIX_BF16);
  return work;
}

/// f32 partials of a split-KV attention, [S, B, L, H, D], to bf16.
Case makeCombine(int64_t splits, int64_t batch) {
  constexpr int64_t length = 1, heads = 128, dim = 128;
  Case work;
  work.name = "n_way/combine_split_kv_s" + std::to_string(splits) +
              "_h128_d128/b" + std::to_string(batch);
  View out =
      work.add(MLAFIX_BF16, {batch, length, heads, dim}, Content::Poison);
  View outLse = work.add(MLAFIX_F32, {batch, length, heads}, Content::Poison);
  View rows = work.add(MLAFIX_F32, {splits, batch, length, heads, dim},
                       Content::Payload);
  // As FlashAttention has it: [S, B, H, L], seen as [S, B, L, H].
  View lse = work.add(MLAFIX_F32, {splits, batch, heads, length}, Content::Lse);
  std::swap(lse.sizes[2], lse.sizes[3]);
  std::swap(lse.strides[2], lse.strides[3]);
  std::vector<States> inputs;
  for (int64_t i = 0; i < splits; ++i)
    inputs.push_back({rows.at(0, i).at(1, 0), lse.at(0, i).at(1, 0)});
  work.contenders = {{"mlafix",
                      false,
                      false,
                      "",
                      {{"combine_split_kv",
                        bindings(heads, dim, "f32", "bf16"),
                        {out, outLse, rows, lse}}}}};
  int64_t numRows = batch * length * heads;
  work.traffic = {splits * numRows * (dim * 4 + 4), numRows * (dim * 2 + 4)};
  work.check = checkOf(out.at(1, 0), outLse.at(1, 0), inputs, MLAFIX_BF16);
  return work;
}

} // namespace

void mlafix::bench::addManyWayCases(std::vector<Case> &cases) {
  for (int64_t ways : {4, 8})
    for (int64_t n : {16, 64, 256, 1024, 8192})
      cases.push_back(makeList(ways, n));
  for (int64_t n : {64, 1024})
    cases.push_back(makeDense("n_way/dense_k4_h128_d128/n" + std::to_string(n),
                              4, n, 128, 128, true));
  // FlashInfer's cascade: a hundred splits.
  cases.push_back(makeDense("n_way/cascade_k100_h32_d128/n2048", 100, 2048, 32,
                            128, false));
  cases.push_back(makeRagged(1024));
  cases.push_back(makeCombine(8, 64));
}
