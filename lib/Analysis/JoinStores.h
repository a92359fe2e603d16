//===- JoinStores.h - joins the stores of all branches ----------*- C++ -*-===//
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
/// case: in both branches of an `if`, for example, or under a predicate and its
/// negation. A joined store keeps only the conditions that all of its stores
/// share, so the linear systems need no case split. Other stores are returned
/// unchanged.
std::vector<RowAccess> joinStores(RowModel &model,
                                  llvm::ArrayRef<const RowAccess *> stores);

llvm::SmallVector<const RowAccess *>
pointersTo(llvm::ArrayRef<RowAccess> accesses);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_JOINSTORES_H
