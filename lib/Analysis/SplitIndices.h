//===- SplitIndices.h - x // size and x % size as indices -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_SPLITINDICES_H
#define MLAFIX_ANALYSIS_SPLITINDICES_H

#include "lib/Analysis/RowModel.h"

namespace mlafix {

/// A division of integers, or the remainder of one.
struct Division {
  mlir::Value dividend, divisor;
  bool isRemainder;
  enum Rounding { Unsigned, ToZero, Down } rounding;
};

/// Returns the division whose result `value` is, possibly behind a cast that
/// keeps the number. Matches the form that mlafix-define-edge-cases writes.
std::optional<Division> matchDivision(mlir::Value value);

/// Two indices of an access that are the quotient and the remainder of one
/// division by a variable, as in `pages[slot // size, slot % size]`. The model
/// has no products of variables, so it cannot say that dividend = quotient *
/// divisor + remainder. But if two accesses have equal indices, their dividends
/// are equal, too.
struct SplitIndex {
  unsigned quotient, remainder; ///< positions among the indices
  mlir::Type type;              ///< type of the dividend
  Linear dividend;
  mlir::Value divisor; ///< the same value in all rows
  /// True if the dividend is >= 0 whenever both indices are >= 0.
  bool keepsSign;

  bool has(unsigned position) const {
    return position == quotient || position == remainder;
  }
};

llvm::SmallVector<SplitIndex, 1> findSplitIndices(RowModel &model,
                                                  const MemoryAccess &access);

/// True if accesses with the indices `a` and `b` have equal dividends wherever
/// they touch the same element.
bool haveEqualDividends(const SplitIndex &a, const SplitIndex &b);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_SPLITINDICES_H
