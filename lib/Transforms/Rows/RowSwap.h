//===- RowSwap.h - exchange of neighbouring blocks of a row -----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_ROWS_ROWSWAP_H
#define MLAFIX_TRANSFORMS_ROWS_ROWSWAP_H

#include "lib/Transforms/Rows/RowAccess.h"

namespace mlafix {

// A swap exchanges neighbouring blocks of a row. The size of a block is a power
// of two, so a swap flips one bit of an element's index. This bit is within the
// pack, in the lane number, or in the pack number.

/// Returns true if the flipped bit is within the pack or in the lane number.
/// Both blocks are then in the same step of a loop over packs.
bool swapsInStep(const RowLayout &layout, SwapOp op);

/// Lowers a swap for which swapsInStep() holds. `pack` is this lane's pack
/// before the swap. Returns this lane's pack after the swap.
mlir::Value swapInStep(mlir::OpBuilder &b, const RowLayout &layout, SwapOp op,
                       mlir::Value pack);

/// `packs` are all packs of this lane before the swap. Returns this lane's
/// packs after the swap.
llvm::SmallVector<mlir::Value> swapPacks(mlir::OpBuilder &b,
                                         const RowLayout &layout, SwapOp op,
                                         mlir::ValueRange packs);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ROWS_ROWSWAP_H
