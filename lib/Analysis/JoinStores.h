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

/// Replaces stores that together write the same element, row or slices of a row
/// in every case by one store under the conditions that all of them have: those
/// of the branches of an `if`, and those of a predicate and its negation. That
/// takes no cases of what the conditions depend on. Stores that nothing is
/// known of stay.
std::vector<RowAccess> joinStores(RowModel &model,
                                  llvm::ArrayRef<const RowAccess *> stores);

llvm::SmallVector<const RowAccess *>
pointersTo(llvm::ArrayRef<RowAccess> accesses);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_JOINSTORES_H
