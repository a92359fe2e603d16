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

// A block is a power of two of elements, so one bit of an element's index
// changes: a bit in its pack, of its lane's number, or of its pack's number.

/// True if that bit is in the pack or of the lane's number: both blocks are
/// among the packs that a walk comes to in one step.
bool swapsInStep(const RowLayout &layout, SwapOp op);

/// Of such a swap: the pack of this lane, out of those of one step.
mlir::Value swapInStep(mlir::OpBuilder &b, const RowLayout &layout, SwapOp op,
                       mlir::Value pack);

/// The packs of this lane.
llvm::SmallVector<mlir::Value> swapPacks(mlir::OpBuilder &b,
                                         const RowLayout &layout, SwapOp op,
                                         mlir::ValueRange packs);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ROWS_ROWSWAP_H
