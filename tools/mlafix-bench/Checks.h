//===- Checks.h - What right results are ------------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// References in f64, written from the numerical contract (N1 to N10), over a
// sample of rows: the first, the last and some hundreds between. The
// conformance tests look at every element; here a wrong kernel is to be caught
// before its time is printed.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_BENCH_CHECKS_H
#define MLAFIX_BENCH_CHECKS_H

#include "Case.h"

#include <optional>

namespace mlafix::bench {

/// Partial states: rows [n, H, D], lse [n, H].
struct States {
  View rows, lse;
  /// The token of these states that belongs to token t. Empty: t itself.
  std::function<int64_t(int64_t t)> token = {};
};

struct MergeCheck {
  mlafix_dtype type;       ///< dtype of the result
  View rows;               ///< the result, [n, H, D]
  std::optional<View> lse; ///< [n, H]
  std::vector<States> inputs;
  /// Returns true if input `index` takes part in token t; empty: always.
  std::function<bool(size_t index, int64_t t)> isLive;
  double scale = 1; ///< results are divided by it
};
/// Checks the merge of the inputs as they were before the run.
std::string checkMerge(const Outcome &outcome, const MergeCheck &expected);

/// Rows of tokens with `isIdentity` must be (0, -inf), all others unchanged.
/// `rows` or `lse` may be empty, which skips it.
struct BlankCheck {
  std::optional<View> rows; ///< [n, H, D]
  std::optional<View> lse;  ///< [n, H]
  std::function<bool(int64_t t)> isIdentity;
};
std::string checkBlank(const Outcome &outcome, const BlankCheck &expected);

/// Checks that every element of `view` (one or two dims) is expected(i, j).
std::string
checkElements(const Outcome &outcome, const View &view,
              const std::function<double(int64_t i, int64_t j)> &expected);

} // namespace mlafix::bench

#endif // MLAFIX_BENCH_CHECKS_H
