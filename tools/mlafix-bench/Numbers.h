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

/// The value of the element that `data` points to.
double toDouble(mlafix_dtype type, const void *data);

/// Writes `value`, which must be one that the type has.
void fromDouble(mlafix_dtype type, double value, void *data);

/// One unit in the last place of a result about as large as `value`, and no
/// less than the smallest step the type has there.
double unitInLastPlace(mlafix_dtype type, double value);

/// Random elements repeat with this period, which no row length divides evenly
/// and every access width does: a buffer is made of copies of one block.
constexpr int64_t patternPeriod = 64 * 8191;

/// patternPeriod elements of random content.
std::vector<char> makePattern(mlafix_dtype type, Content content);

/// Where in the pattern element 0 of a buffer lies: buffers differ, and so do
/// the sets. A multiple of 64.
int64_t patternStart(int buffer, int64_t set);

} // namespace mlafix::bench

#endif // MLAFIX_BENCH_NUMBERS_H
