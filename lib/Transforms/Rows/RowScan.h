//===- RowScan.h - prefix scans of a row ------------------------*- C++ -*-===//
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
// RowReduce.h. The elements below a node of this tree form a block, whose left
// half precedes its right half. A scan visits the bits of the element's index,
// lowest first. For each bit, one vector operation combines the elements of the
// right half of each block with the total of the left half (Sklansky 1960).

/// A pack of a scanned row, and the total of the block of the reduction tree
/// that contains it. The block doubles in size from bit to bit.
struct ScannedPack {
  mlir::Value pack;  ///< the pack, scanned as if the block were the whole row
  mlir::Value total; ///< the total of the block, in all of its lanes
};

/// Scans along the index bits within a pack. The total is neutral where
/// `exists`, an i1, is false (null: always true).
ScannedPack scanPack(mlir::OpBuilder &b, const RowLayout &layout, ScanOp op,
                     mlir::Value pack, mlir::Value exists);

/// Scans along the bits of the lane number, for each pack of this lane.
void scanAcrossLanes(mlir::OpBuilder &b, const RowLayout &layout, ScanOp op,
                     llvm::SmallVector<ScannedPack> &scanned);

/// Scans along the bits of the pack number, where all packs of this lane are in
/// registers. Returns the scanned packs.
llvm::SmallVector<mlir::Value>
scanAcrossPacks(mlir::OpBuilder &b, const RowLayout &layout, ScanOp op,
                llvm::ArrayRef<ScannedPack> scanned);

/// Returns the number of bits in a pack number.
int64_t countPackBits(const RowLayout &layout, ScanOp op);

/// Scans along the bits of the pack number in a walk over the packs. `step`
/// (index) is the number of the step. `totals` is a buffer with one element per
/// bit: the total of the last left half for this bit. Returns the scanned pack.
mlir::Value scanAcrossSteps(mlir::OpBuilder &b, const RowLayout &layout,
                            ScanOp op, ScannedPack scanned, mlir::Value step,
                            mlir::Value totals);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ROWS_ROWSCAN_H
