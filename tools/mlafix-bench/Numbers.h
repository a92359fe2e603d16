//===- Numbers.h - Converts and generates elements --------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_BENCH_NUMBERS_H
#define MLAFIX_BENCH_NUMBERS_H

#include "Case.h"

namespace mlafix::bench {

/// Returns the element at `data`.
double toDouble(mlafix_dtype type, const void *data);

/// Writes `value` to `data`. The type must be able to represent it.
void fromDouble(mlafix_dtype type, double value, void *data);

/// Returns the ulp of numbers as large as `value`. It is at least the distance
/// between the type's smallest numbers.
double unitInLastPlace(mlafix_dtype type, double value);

/// The random elements of a buffer repeat after this number of elements, which
/// is a multiple of every access width, but not of a row length.
constexpr int64_t patternPeriod = 64 * 8191;

/// Returns `patternPeriod` random elements: the pattern that fills a buffer.
std::vector<char> makePattern(mlafix_dtype type, Content content);

/// Returns the position in the pattern at which a buffer begins: a multiple of
/// 64 that differs between buffers and sets.
int64_t patternStart(int buffer, int64_t set);

} // namespace mlafix::bench

#endif // MLAFIX_BENCH_NUMBERS_H
