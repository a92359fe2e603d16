//===- BoundedRows.h - code versions for sizes of the launch ----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The launch decides the length of a row along a bounded dim. Code versions may
// assume more about it than the kernel does, because their guards check it.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PLAN_BOUNDEDROWS_H
#define MLAFIX_PLAN_BOUNDEDROWS_H

#include "lib/Plan/ChooseLayout.h"

namespace mlafix {

/// Inserts a copy of `kernel` before it, KERNEL_whole, for calls in which the
/// sizes of bounded dims are multiples of a pack (at most `pack` elements).
/// Returns null if the kernel has no bounded dims, or if packs are single
/// elements.
KernelOp cloneForWholePacks(KernelOp kernel, const RowShape &shape,
                            int64_t pack);

/// The bounds, in elements and ascending, of code versions for shorter rows,
/// with packs of `pack` elements. Empty if they would gain nothing: for kernels
/// without bounded rows, with short ones, or with a known number of rows.
llvm::SmallVector<int64_t> getSmallerBounds(KernelOp kernel,
                                            const MachineModel &machine,
                                            const RowShape &shape, int64_t pack,
                                            bool isGPU);

/// The bounds, ascending, of code versions for shorter rows in whole packs, if
/// rows of the kernel's bound go over a cluster: what one block holds, and
/// twice as much each, so that few lanes lack a pack.
llvm::SmallVector<int64_t> getClusterBounds(KernelOp kernel,
                                            const MachineModel &machine,
                                            const RowShape &shape,
                                            int64_t pack);

/// Inserts a copy of `kernel` before it, KERNEL_mostN, for sizes of at most
/// `most` along the row dims with a larger bound.
KernelOp cloneForBound(KernelOp kernel, const RowShape &shape, int64_t most);

} // namespace mlafix

#endif // MLAFIX_PLAN_BOUNDEDROWS_H
