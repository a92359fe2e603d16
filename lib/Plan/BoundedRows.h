//===- BoundedRows.h - code versions for shorter rows -----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Only the launch knows the length of a row along a bounded dim. A code version
// may assume more about this length than the kernel does, because its guards
// check the assumption.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PLAN_BOUNDEDROWS_H
#define MLAFIX_PLAN_BOUNDEDROWS_H

#include "lib/Plan/ChooseLayout.h"

namespace mlafix {

/// Inserts a copy of `kernel` before it, named KERNEL_whole. The copy is for
/// calls in which the sizes of bounded dims are multiples of a pack (at most
/// `pack` elements). Returns null if the kernel has no bounded dims, or if
/// their packs are single elements.
KernelOp cloneForWholePacks(KernelOp kernel, const RowShape &shape,
                            int64_t pack);

/// Returns the bounds of code versions for shorter rows, in elements and in
/// ascending order. A pack has `pack` elements. Returns none for a kernel with
/// an exchange. Also returns none if such versions would gain nothing: the
/// kernel has no bounded rows, only short ones, or a known number of rows.
llvm::SmallVector<int64_t> getSmallerBounds(KernelOp kernel,
                                            const MachineModel &machine,
                                            const RowShape &shape, int64_t pack,
                                            bool isGPU);

/// Returns the bounds of code versions for shorter rows in whole packs, in
/// elements and in ascending order. The first bound is what one block holds;
/// each further bound is twice the one before, so that few lanes lack a pack.
/// Returns none unless rows of the kernel's own bound take a cluster.
llvm::SmallVector<int64_t> getClusterBounds(KernelOp kernel,
                                            const MachineModel &machine,
                                            const RowShape &shape,
                                            int64_t pack);

/// Inserts a copy of `kernel` before it, named KERNEL_mostN with N = `most`.
/// The copy is for calls with sizes of at most `most` along row dims whose
/// bound is larger.
KernelOp cloneForBound(KernelOp kernel, const RowShape &shape, int64_t most);

} // namespace mlafix

#endif // MLAFIX_PLAN_BOUNDEDROWS_H
