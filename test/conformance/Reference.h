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
    Exact, ///< Exactly Bits, or any NaN if Bits are a NaN.
    Near,  ///< Value, within the tolerance of N10.
    NaN    ///< Any NaN.
  };
  Kind How = Exact;
  uint32_t Bits = 0; ///< Used if Exact.
  double Value = 0;  ///< Used if Near.
  double Magnitude =
      0; ///< Sum of |weight x payload|: what rounding scales with.
};

/// The values that one row may have: D elements of the storage type, and the
/// lse (f32).
struct ExpectedRow {
  std::vector<Expected> Payload;
  Expected Lse;
};

/// One side of a merge: the bits of D elements, and a log-sum-exp. A side with
/// a null payload must not be read.
struct Side {
  const uint32_t *Payload = nullptr;
  float Lse = 0;
};

/// True if the lse is infinite, of either sign: the side is empty (N1, N2).
bool isEmpty(float Lse);

/// Merges two sides of D elements of \p Type, according to N1-N8. The result
/// has the same type.
ExpectedRow mergeReference(Float Type, int64_t D, Side Prefix, Side Suffix);

/// True if \p Bits are an expected value; otherwise describes the fault in \p
/// Why.
bool matches(Float Type, const Expected &E, uint32_t Bits, std::string &Why);

/// Returns which of N rows belong to segments without keys: the rows of each
/// segment i with KvLens[i] <= 0 and 0 <= CuSeqlens[i] <= CuSeqlens[i + 1] <=
/// N. A segment with other bounds is ignored.
std::vector<bool> deadRows(int64_t N, const std::vector<int32_t> &KvLens,
                           const std::vector<int32_t> &CuSeqlens);

} // namespace conformance

#endif // MLAFIX_TEST_CONFORMANCE_REFERENCE_H
