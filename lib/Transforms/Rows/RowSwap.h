//===- RowSwap.h - neighbouring blocks change places ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_ROWS_ROWSWAP_H
#define MLAFIX_TRANSFORMS_ROWS_ROWSWAP_H

#include "lib/Transforms/Rows/RowAccess.h"

namespace mlafix {

// Blocks are a power of two of elements, so a swap flips one bit of an
// element's index: a bit in the pack, in the lane number, or in the pack
// number.

/// True if the flipped bit is in the pack or in the lane number, so that both
/// blocks are in the same step of a walk.
bool swapsInStep(const RowLayout &layout, SwapOp op);

/// Lowers such a swap: returns this lane's pack, given the packs of one step.
mlir::Value swapInStep(mlir::OpBuilder &b, const RowLayout &layout, SwapOp op,
                       mlir::Value pack);

/// Returns the swapped packs of this lane.
llvm::SmallVector<mlir::Value> swapPacks(mlir::OpBuilder &b,
                                         const RowLayout &layout, SwapOp op,
                                         mlir::ValueRange packs);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ROWS_ROWSWAP_H
