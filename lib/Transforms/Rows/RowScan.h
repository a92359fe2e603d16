//===- RowScan.h - the reductions of a row's beginnings ---------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_ROWS_ROWSCAN_H
#define MLAFIX_TRANSFORMS_ROWS_ROWSCAN_H

#include "lib/Transforms/Rows/RowAccess.h"

namespace mlafix {

// Element i of a scan is the reduction of elements 0 to i by the tree of
// RowReduce.h. In each block of that tree, the left half is complete before the
// right half starts. So along each bit of the element's index, lowest first,
// the right half is combined with the total of the left half (Sklansky 1960):
// one vector operation per bit.

/// A pack of a scanned row, within a block that doubles from bit to bit.
struct ScannedPack {
  mlir::Value pack;  ///< scanned as if this block were the whole row
  mlir::Value total; ///< total of the block, in all of its lanes
};

/// Scans along the index bits within a pack; neutral where the pack does not
/// exist (null: it exists).
ScannedPack scanPack(mlir::OpBuilder &b, const RowLayout &layout, ScanOp op,
                     mlir::Value pack, mlir::Value exists);

/// Scans along the bits of the lane number, for each pack of this lane.
void scanAcrossLanes(mlir::OpBuilder &b, const RowLayout &layout, ScanOp op,
                     llvm::SmallVector<ScannedPack> &scanned);

/// Scans along the bits of the pack number if all packs of this lane are in
/// registers; returns the scanned packs.
llvm::SmallVector<mlir::Value>
scanAcrossPacks(mlir::OpBuilder &b, const RowLayout &layout, ScanOp op,
                llvm::ArrayRef<ScannedPack> scanned);

/// The number of pack-number bits.
int64_t countPackBits(const RowLayout &layout, ScanOp op);

/// As scanAcrossPacks(), for step `step` (index) of a walk over the packs.
/// `totals`, a buffer with one element per bit, holds the last complete left
/// half.
mlir::Value scanAcrossSteps(mlir::OpBuilder &b, const RowLayout &layout,
                            ScanOp op, ScannedPack scanned, mlir::Value step,
                            mlir::Value totals);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ROWS_ROWSCAN_H
