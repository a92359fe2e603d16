//===- Reference.h - merges in f64 ------------------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The result of a row by the numerical contract (N1-N13). Written from the
// contract alone, in double precision, one row at a time.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TEST_CONFORMANCE_REFERENCE_H
#define MLAFIX_TEST_CONFORMANCE_REFERENCE_H

#include "Numerics.h"

#include <string>
#include <vector>

namespace conformance {

/// The values that one element may have.
struct Expected {
  enum Kind {
    Exact, ///< These bits; any NaN where they are a NaN.
    Near,  ///< Value, within the tolerance of N10.
    NaN    ///< Any NaN.
  };
  Kind How = Exact;
  uint32_t Bits = 0; ///< For Exact.
  double Value = 0;  ///< For Near.
  double Magnitude =
      0; ///< Sum of |weight x payload|: what rounding scales with.
};

/// The values that one row may have: D elements of the storage type, and the
/// lse (f32).
struct ExpectedRow {
  std::vector<Expected> Payload;
  Expected Lse;
};

/// One side of a merge: D elements of raw bits and a log-sum-exp. A
/// null payload is a side that must not be read at all.
struct Side {
  const uint32_t *Payload = nullptr;
  float Lse = 0;
};

/// Both infinities mean that the side holds nothing (N1, N2).
bool isEmpty(float Lse);

/// Merges two sides of D elements of \p Type, in which the result is stored:
/// N1-N8.
ExpectedRow mergeReference(Float Type, int64_t D, Side Prefix, Side Suffix);

/// True if \p Bits is what was expected; on failure says why in \p Why.
bool matches(Float Type, const Expected &E, uint32_t Bits, std::string &Why);

/// The rows of [0, N) that segments without keys and values cover: for segment
/// i with KvLens[i] <= 0 and 0 <= CuSeqlens[i] <= CuSeqlens[i + 1] <= N, its
/// rows. A segment whose bounds are not in order counts for nothing.
std::vector<bool> deadRows(int64_t N, const std::vector<int32_t> &KvLens,
                           const std::vector<int32_t> &CuSeqlens);

} // namespace conformance

#endif // MLAFIX_TEST_CONFORMANCE_REFERENCE_H
