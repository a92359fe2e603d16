//===- Checks.cpp - What right results are --------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "Numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace mlafix::bench;

namespace {

/// Returns all numbers in [0, count) if there are at most `most`. Otherwise
/// returns `most` of them: the first, the last and evenly spaced ones between.
std::vector<int64_t> sample(int64_t count, int64_t most = 384) {
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < std::min(count, most); ++i)
    chosen.push_back(count <= most ? i : i * (count - 1) / (most - 1));
  return chosen;
}

std::string sentence(int64_t t, int64_t h, const char *what, double expected,
                     double got) {
  char text[160];
  std::snprintf(text, sizeof(text),
                "token %lld, head %lld: expected %s %.9g, got %.9g",
                static_cast<long long>(t), static_cast<long long>(h), what,
                expected, got);
  return text;
}

bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

/// Rule N2 of docs/Dialect.md: either infinity means that the state is empty.
bool isEmptyLse(double lse) { return std::isinf(lse); }

std::string checkMergedRow(const Outcome &outcome, const MergeCheck &expected,
                           int64_t t, int64_t h) {
  std::vector<double> weights;
  double top = -INFINITY, sum = 0;
  auto tokenOf = [&](const States &states) {
    return states.token ? states.token(t) : t;
  };
  for (size_t i = 0; i < expected.inputs.size(); ++i) {
    const States &states = expected.inputs[i];
    const View &view = states.lse;
    bool isLive = !expected.isLive || expected.isLive(i, t);
    double lse =
        isLive ? outcome.before(view.buffer, view.index({tokenOf(states), h}))
               : -INFINITY;
    weights.push_back(isEmptyLse(lse) ? -INFINITY : lse);
    top = std::max(top, weights.back());
  }
  bool isEmpty = top == -INFINITY;
  for (double &weight : weights) {
    weight = isEmpty ? 0 : std::exp(weight - top);
    sum += weight;
  }
  if (expected.lse) {
    double want = isEmpty ? -INFINITY : top + std::log(sum);
    double got =
        outcome.after(expected.lse->buffer, expected.lse->index({t, h}));
    if (!same(want, got) &&
        !(std::fabs(want - got) <= 4e-6 * std::max(1.0, std::fabs(want))))
      return sentence(t, h, "an lse of", want, got);
  }
  for (int64_t d = 0; d < expected.rows.sizes[2]; ++d) {
    double want = 0, size = 0;
    for (size_t i = 0; i < expected.inputs.size(); ++i) {
      if (weights[i] == 0)
        continue;
      const States &states = expected.inputs[i];
      double value = outcome.before(states.rows.buffer,
                                    states.rows.index({tokenOf(states), h, d}));
      want += weights[i] / sum * value;
      size += weights[i] / sum * std::fabs(value);
    }
    want /= expected.scale;
    size /= expected.scale;
    double got =
        outcome.after(expected.rows.buffer, expected.rows.index({t, h, d}));
    // Rule N10 of docs/Dialect.md. Terms may cancel, so the relative error
    // refers to the sum of their magnitudes.
    double allowed = unitInLastPlace(expected.type, want) + 4e-6 * size;
    // A rounded intermediate result is at most `size`, so each rounding adds an
    // error of at most one ulp of `size`.
    allowed += outcome.roundings * unitInLastPlace(expected.type, size);
    if (!(std::fabs(want - got) <= allowed))
      return sentence(t, h, ("element " + std::to_string(d)).c_str(), want,
                      got);
  }
  return "";
}

} // namespace

Check mlafix::bench::checkMerge(const MergeCheck &expected) {
  return [expected](const Outcome &outcome) -> std::string {
    int64_t heads = expected.rows.sizes[1];
    // A row takes longer to check if it has many states. Check only as many
    // rows as have about `mostElements` elements together.
    constexpr int64_t mostElements = 512 << 10;
    int64_t perRow = expected.rows.sizes[2] * int64_t(expected.inputs.size());
    int64_t most = std::clamp<int64_t>(mostElements / perRow, 16, 384);
    for (int64_t row : sample(expected.rows.sizes[0] * heads, most)) {
      std::string wrong =
          checkMergedRow(outcome, expected, row / heads, row % heads);
      if (!wrong.empty())
        return wrong;
    }
    return "";
  };
}

Check mlafix::bench::checkBlank(const BlankCheck &expected) {
  return [expected](const Outcome &outcome) -> std::string {
    const View &shape = expected.lse ? *expected.lse : *expected.rows;
    int64_t heads = shape.sizes[1];
    for (int64_t row : sample(shape.sizes[0] * heads)) {
      int64_t t = row / heads, h = row % heads;
      bool isIdentity = expected.isIdentity(t);
      auto isWrong = [&](const View &view, int64_t index, double blank,
                         double &want, double &got) {
        want = isIdentity ? blank : outcome.before(view.buffer, index);
        got = outcome.after(view.buffer, index);
        return !same(want, got);
      };
      double want = 0, got = 0;
      if (expected.lse && isWrong(*expected.lse, expected.lse->index({t, h}),
                                  -INFINITY, want, got))
        return sentence(t, h, "an lse of", want, got);
      for (int64_t d = 0; expected.rows && d < expected.rows->sizes[2]; ++d)
        if (isWrong(*expected.rows, expected.rows->index({t, h, d}), 0, want,
                    got))
          return sentence(t, h, ("element " + std::to_string(d)).c_str(), want,
                          got);
    }
    return "";
  };
}

std::string mlafix::bench::checkElements(
    const Outcome &outcome, const View &view,
    const std::function<double(int64_t i, int64_t j)> &expected) {
  int64_t columns = view.sizes.size() > 1 ? view.sizes[1] : 1;
  for (int64_t i = 0; i < view.sizes[0]; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      double want = expected(i, j);
      double got =
          outcome.after(view.buffer, view.sizes.size() > 1 ? view.index({i, j})
                                                           : view.index({i}));
      if (!same(want, got))
        return sentence(i, j, "an element of", want, got);
    }
  return "";
}
