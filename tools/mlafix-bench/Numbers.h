//===- Numbers.h - Elements as numbers, and random ones ---------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_BENCH_NUMBERS_H
#define MLAFIX_BENCH_NUMBERS_H

#include "Case.h"

namespace mlafix::bench {

/// Reads the element at `data`.
double toDouble(mlafix_dtype type, const void *data);

/// Writes `value`, which must be representable in the type.
void fromDouble(mlafix_dtype type, double value, void *data);

/// The ulp of a result of about the size of `value`, but at least the type's
/// smallest step.
double unitInLastPlace(mlafix_dtype type, double value);

/// Period of the random elements: no row length divides it evenly, every access
/// width does. A buffer consists of copies of one block.
constexpr int64_t patternPeriod = 64 * 8191;

/// One period of random content.
std::vector<char> makePattern(mlafix_dtype type, Content content);

/// Position in the pattern of a buffer's element 0: a multiple of 64 that
/// differs between buffers and sets.
int64_t patternStart(int buffer, int64_t set);

} // namespace mlafix::bench

#endif // MLAFIX_BENCH_NUMBERS_H
