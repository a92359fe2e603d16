//===- Checks.h - What right results are ------------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Reference results in f64, written from the numerical contract (N1 to N10 of
// docs/Dialect.md).
// The checks look at a sample of rows: the first, the last and some hundreds
// between them. This is enough to find a wrong kernel before its time is
// printed. The tests of test/python check every element.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_BENCH_CHECKS_H
#define MLAFIX_BENCH_CHECKS_H

#include "Case.h"

#include <optional>

namespace mlafix::bench {

/// Partial states: rows of shape [n, H, D], and their lse of shape [n, H].
struct States {
  View rows, lse;
  /// Returns which token of these states is merged into token t of the result.
  /// If no function is set, that is token t, too.
  std::function<int64_t(int64_t t)> token = {};
};

struct MergeCheck {
  mlafix_dtype type;            ///< dtype of the result
  View rows;                    ///< the result, of shape [n, H, D]
  std::optional<View> lse = {}; ///< its lse, of shape [n, H]
  std::vector<States> inputs = {};
  /// Returns true if input `index` takes part in token t. If no function
  /// is set, all inputs take part.
  std::function<bool(size_t index, int64_t t)> isLive = {};
  double scale = 1; ///< the result is divided by this number
};
/// Returns a check of a merge against the inputs as they were before the run.
Check checkMerge(const MergeCheck &expected);

/// Describes blanked rows. Rows of tokens for which `isIdentity` is true must
/// be (0, -inf), and all others must be unchanged. If `rows` or
/// `lse` has no value, it is not checked.
struct BlankCheck {
  std::optional<View> rows; ///< of shape [n, H, D]
  std::optional<View> lse;  ///< of shape [n, H]
  std::function<bool(int64_t t)> isIdentity;
};
Check checkBlank(const BlankCheck &expected);

/// Checks that every element of `view` is expected(i, j). The view has one or
/// two dims.
std::string
checkElements(const Outcome &outcome, const View &view,
              const std::function<double(int64_t i, int64_t j)> &expected);

} // namespace mlafix::bench

#endif // MLAFIX_BENCH_CHECKS_H
