//===- Reference.h - merges in f64 ------------------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Computes the expected result of a row according to the numerical contract
// (N1-N13), in double precision. It follows the text of the contract, not
// mlafix's code.
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
    Exact, ///< The element must be Bits, or any NaN if Bits are a NaN.
    Near,  ///< The element must be Value within N10's tolerance.
    NaN    ///< The element must be any NaN.
  };
  Kind How = Exact;
  uint32_t Bits = 0; ///< Used if Exact.
  double Value = 0;  ///< Used if Near.
  double Magnitude =
      0; ///< The sum of |weight x payload|; the tolerance is relative to it.
};

/// The values that one row may have: D elements of the storage type, and the
/// lse (f32).
struct ExpectedRow {
  std::vector<Expected> Payload;
  Expected Lse;
};

/// One side of a merge: the bits of D elements, and a log-sum-exp. A side with
/// a null payload is excluded: the merge ignores it.
struct Side {
  const uint32_t *Payload = nullptr;
  float Lse = 0;
};

/// Returns true if the lse is -inf or +inf, so that the side is empty (N1, N2).
bool isEmpty(float Lse);

/// Merges two sides of D elements of \p Type, according to N1-N8. The result
/// has the same type.
ExpectedRow mergeReference(Float Type, int64_t D, Side Prefix, Side Suffix);

/// Returns true if \p Bits are an expected value. Otherwise sets \p Why to a
/// description of the fault.
bool matches(Float Type, const Expected &E, uint32_t Bits, std::string &Why);

/// Returns a bool for each of N rows: true if the row belongs to a segment
/// without keys. Segment i has no keys if KvLens[i] <= 0. Segments are ignored
/// unless 0 <= CuSeqlens[i] <= CuSeqlens[i + 1] <= N.
std::vector<bool> deadRows(int64_t N, const std::vector<int32_t> &KvLens,
                           const std::vector<int32_t> &CuSeqlens);

} // namespace conformance

#endif // MLAFIX_TEST_CONFORMANCE_REFERENCE_H
