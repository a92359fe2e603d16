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

/// The quotient and the remainder of one division among the indices of an
/// access, as in `pages[slot // size, slot % size]`, by a number that is no
/// constant. The model has no products of variables, but both indices together
/// say what was divided.
struct SplitIndex {
  unsigned quotient, remainder; ///< positions in the indices
  mlir::Type type;              ///< of the dividend
  Linear dividend;
  mlir::Value divisor; ///< the same in all rows
  /// True if the dividend is at least 0 where both indices are.
  bool keepsSign;

  bool has(unsigned position) const {
    return position == quotient || position == remainder;
  }
};

llvm::SmallVector<SplitIndex, 1> findSplitIndices(RowModel &model,
                                                  const MemoryAccess &access);

/// True if the dividends of both are equal where the accesses are of one
/// element.
bool haveEqualDividends(const SplitIndex &a, const SplitIndex &b);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_SPLITINDICES_H
