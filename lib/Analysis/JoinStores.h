//===- JoinStores.h - stores of all branches as one -------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_JOINSTORES_H
#define MLAFIX_ANALYSIS_JOINSTORES_H

#include "lib/Analysis/RowModel.h"

#include <vector>

namespace mlafix {

/// Joins stores that together write the same element, row or slices in every
/// case, and keeps only the conditions that all of them share: stores in both
/// branches of an `if`, or under a predicate and its negation. Needs no case
/// split in the linear systems. Other stores are kept.
std::vector<RowAccess> joinStores(RowModel &model,
                                  llvm::ArrayRef<const RowAccess *> stores);

llvm::SmallVector<const RowAccess *>
pointersTo(llvm::ArrayRef<RowAccess> accesses);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_JOINSTORES_H
