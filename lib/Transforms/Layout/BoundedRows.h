//===- BoundedRows.h - code versions for sizes of the launch ----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A row along a dim with a bound ends where the launch says. Guards ask more of
// its size than the kernel does, and code versions rely on that.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LAYOUT_BOUNDEDROWS_H
#define MLAFIX_TRANSFORMS_LAYOUT_BOUNDEDROWS_H

#include "lib/Transforms/Layout/ChooseLayout.h"

namespace mlafix {

/// A copy of `kernel` before it, called KERNEL_whole, for sizes along dims with
/// bounds that are multiples of packs, at most `pack` elements each. Null if it
/// has no such rows, or packs are single elements.
KernelOp cloneForWholePacks(KernelOp kernel, const RowShape &shape,
                            int64_t pack);

/// The bounds, in elements and ascending, that code versions for shorter rows
/// have, where packs have `pack` elements; none if they gain nothing: in a
/// kernel without such rows, with short ones, or with a known number of rows.
llvm::SmallVector<int64_t> getSmallerBounds(KernelOp kernel,
                                            const MachineModel &machine,
                                            const RowShape &shape, int64_t pack,
                                            bool isGPU);

/// A copy of `kernel` before it, called KERNEL_mostN, for sizes of at most
/// `most` along the dims of its rows that have a larger bound.
KernelOp cloneForBound(KernelOp kernel, const RowShape &shape, int64_t most);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LAYOUT_BOUNDEDROWS_H
