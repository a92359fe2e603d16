//===- CasesPadding.cpp - Padding rows, flags and lengths -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Case.h"
#include "Checks.h"

#include <algorithm>
#include <optional>
#include <string>

using namespace mlafix::bench;

namespace {

constexpr int64_t heads = 128, dim = 128;
const char *const bindings = "H=128,D=128,T=bf16";

/// Sets the launches of a kernel that gets the number of live rows after
/// `args`: as a scalar, or as a tensor on the device.
void launchCounted(Case &work, const char *kernel, std::string bindings,
                   std::vector<Argument> args, int64_t live, bool isOnDevice) {
  args.push_back(isOnDevice ? int64_t(0) : live);
  args.push_back(
      isOnDevice ? work.add(MLAFIX_I32, {1}, Content::Values, {double(live)})
                 : Argument());
  bindings += bindings.empty() ? "" : ",";
  bindings += isOnDevice ? "live_rows_at=present" : "live_rows_at=absent";
  work.implementations = ours({{kernel, bindings, std::move(args)}});
}

std::string caseName(const char *kernel, bool isOnDevice) {
  return std::string(kernel) + (isOnDevice ? "_device" : "");
}

/// Blanks the padding of a captured batch: sets the rows after the live ones to
/// (0, -inf).
Case makePadRows(int64_t capacity, int64_t live, bool isOnDevice) {
  Case work;
  work.name = "pad/" + caseName("fill_pad_rows", isOnDevice) + "_h128_d128/" +
              std::to_string(live) + "_of_" + std::to_string(capacity);
  View out = work.add(MLAFIX_BF16, {capacity, heads, dim}, Content::Payload);
  View lse = work.add(MLAFIX_F32, {heads, capacity}, Content::Lse);
  launchCounted(work, "fill_pad_rows", bindings, {out, lse}, live, isOnDevice);
  work.traffic = {0, (capacity - live) * heads * (dim * 2 + 4)};
  // At the small shapes of serving, the launch takes most of the time, so a
  // comparison with the roof says nothing about the kernel.
  work.hasRoof = capacity > 64;
  work.check = checkBlank(
      {out, lse.transposed(), [live](int64_t t) { return t >= live; }});
  return work;
}

std::vector<double> alternating(int64_t count, double even, double odd) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(i % 2 ? odd : even);
  return values;
}

Case makeClearFlags(int64_t capacity, int64_t live, bool isOnDevice) {
  Case work;
  work.name = "metadata/" + caseName("clear_pad_flags", isOnDevice) + "/" +
              std::to_string(live) + "_of_" + std::to_string(capacity);
  View flags = work.add(MLAFIX_BOOL, {capacity}, Content::Values,
                        alternating(capacity, 1, 0));
  launchCounted(work, "clear_pad_flags", "", {flags}, live, isOnDevice);
  work.traffic = {0, capacity - live};
  work.hasRoof = false;
  work.check = [=](const Outcome &outcome) {
    return checkElements(outcome, flags, [&](int64_t i, int64_t) {
      return i < live ? outcome.before(flags.buffer, i) : 0.0;
    });
  };
  return work;
}

Case makePrefilling(int64_t capacity, int64_t live, bool isOnDevice) {
  Case work;
  work.name = "metadata/" + caseName("mark_prefilling", isOnDevice) + "/" +
              std::to_string(live) + "_of_" + std::to_string(capacity);
  View flags = work.add(MLAFIX_BOOL, {capacity}, Content::Poison);
  View computed = work.add(MLAFIX_I32, {capacity}, Content::Values,
                           alternating(capacity, 100, 700));
  View prompt = work.add(MLAFIX_I32, {capacity}, Content::Values,
                         alternating(capacity, 500, 500));
  launchCounted(work, "mark_prefilling", "I=i32", {flags, computed, prompt},
                live, isOnDevice);
  work.traffic = {live * 8, capacity};
  work.hasRoof = false;
  work.check = [=](const Outcome &outcome) {
    return checkElements(outcome, flags, [&](int64_t i, int64_t) {
      return i < live && i % 2 == 0 ? 1.0 : 0.0;
    });
  };
  return work;
}

/// Expands context lengths for DeepGEMM. Each request has `next` tokens.
Case makeContextLens(int64_t decodes, int64_t live, int64_t next,
                     bool isOnDevice) {
  Case work;
  work.name = "metadata/" + caseName("expand_context_lens", isOnDevice) + "/" +
              std::to_string(live) + "_of_" + std::to_string(decodes) + "x" +
              std::to_string(next);
  View out = work.add(MLAFIX_I32, {decodes, next}, Content::Poison);
  std::vector<double> lens;
  for (int64_t i = 0; i < decodes; ++i)
    lens.push_back(
        double((i * 7919) % 202752)); // the longest context of GLM-5.1
  View seqLens = work.add(MLAFIX_I32, {decodes}, Content::Values, lens);
  launchCounted(work, "expand_context_lens", "", {out, seqLens}, live,
                isOnDevice);
  work.traffic = {live * 4, decodes * next * 4};
  work.hasRoof = false;
  work.check = [=](const Outcome &outcome) {
    return checkElements(outcome, out, [&](int64_t i, int64_t j) {
      return i < live ? std::max(lens[i] - double(next) + 1 + double(j), 0.0)
                      : 0.0;
    });
  };
  return work;
}

/// Masks the lse of requests without context. If `hasRows` is true, masks their
/// rows too.
Case makeMask(int64_t requests, int64_t length, bool hasRows) {
  int64_t n = requests * length;
  Case work;
  const char *kernel =
      hasRows ? "mask_empty_context" : "mask_empty_context_lse";
  work.name = std::string("metadata/") + kernel + "_h128/" +
              std::to_string(requests) + "x" + std::to_string(length);
  std::vector<double> queries = {0}, contexts = {0};
  for (int64_t i = 0; i < requests; ++i) {
    queries.push_back(double((i + 1) * length));
    contexts.push_back(contexts.back() + (i % 8 == 0 ? 0 : 100));
  }
  std::vector<Argument> args;
  std::optional<View> out;
  if (hasRows) {
    out = work.add(MLAFIX_BF16, {n, heads, dim}, Content::Payload);
    args.push_back(*out);
  }
  View lse = work.add(MLAFIX_F32, {heads, n}, Content::Lse);
  args.push_back(lse);
  args.push_back(
      work.add(MLAFIX_I32, {requests + 1}, Content::Values, queries));
  args.push_back(
      work.add(MLAFIX_I32, {requests + 1}, Content::Values, contexts));
  work.implementations = ours({{kernel, hasRows ? bindings : "H=128", args}});
  int64_t dead = (requests + 7) / 8 * length;
  work.traffic = {requests * 8 + 8, dead * heads * (hasRows ? dim * 2 + 4 : 4)};
  work.hasRoof = hasRows;
  work.check = checkBlank({out, lse.transposed(), [length](int64_t t) {
                             return t / length % 8 == 0;
                           }});
  return work;
}

} // namespace

void mlafix::bench::addPaddingCases(std::vector<Case> &cases) {
  for (bool isOnDevice : {false, true}) {
    cases.push_back(makePadRows(8, 5, isOnDevice));
    cases.push_back(makePadRows(1024, 1, isOnDevice));
    cases.push_back(makeClearFlags(1024, 1, isOnDevice));
    cases.push_back(makePrefilling(1024, 5, isOnDevice));
    cases.push_back(makeContextLens(256, 200, 4, isOnDevice));
  }
  for (bool hasRows : {false, true})
    cases.push_back(makeMask(256, 4, hasRows));
}
