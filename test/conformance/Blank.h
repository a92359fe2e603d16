//===- Blank.h - rows of which some are blanked -----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TEST_CONFORMANCE_BLANK_H
#define MLAFIX_TEST_CONFORMANCE_BLANK_H

#include "Sides.h"

#include <functional>

namespace conformance {

/// out [N, H, D] and lse [H, N] filled with any bits at all, NaN too.
struct BlankRows {
  /// \p RowsFirst: the lse lies as [N, H].
  BlankRows(const StateCase &Case, int64_t N, Spread How,
            bool RowsFirst = false);

  /// The lse as [H, N], wherever it lies.
  mlafix::Tensor lseView() const {
    return RowsFirst ? Lse.view({1, 0}) : Lse.view();
  }

  /// Fills both again, and uploads them.
  void refill();
  /// That the payload (where \p WithOut) and the lse (where \p WithLse) of the
  /// tokens for which \p IsDead holds are +0.0 and -inf, and nothing else is
  /// other than it was.
  testing::AssertionResult check(const std::function<bool(int64_t)> &IsDead,
                                 bool WithOut, bool WithLse) const;

  StateCase Case;
  int64_t N;
  bool RowsFirst;
  TestTensor Out, Lse;

private:
  uint32_t payloadBits(int64_t T, int64_t H, int64_t I) const;
  uint32_t lseBits(int64_t T, int64_t H) const;
};

/// A tensor of these integers.
TestTensor intTensor(const std::vector<int32_t> &Values);

} // namespace conformance

#endif // MLAFIX_TEST_CONFORMANCE_BLANK_H
