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

// Element i of a scan is the reduction of the elements up to i, by the tree of
// a reduction (RowReduce.h). A half of a block of that tree is complete before
// the other half begins, so along each bit of the element's index, lowest
// first, what lies in the right half takes the total of the left half (Sklansky
// 1960). That is one operation for each bit of the index, on vectors.

/// A pack of a row that is scanned, within a block that grows from bit to bit.
struct ScannedPack {
  mlir::Value pack;  ///< scanned as if the row began with this block
  mlir::Value total; ///< of the block, in all lanes that share it
};

/// The bits of an index in the pack. Neutral where the pack does not exist
/// (null: it always does).
ScannedPack scanPack(mlir::OpBuilder &b, const RowLayout &layout, ScanOp op,
                     mlir::Value pack, mlir::Value exists);

/// The bits of a lane's number, for each pack of this lane.
void scanAcrossLanes(mlir::OpBuilder &b, const RowLayout &layout, ScanOp op,
                     llvm::SmallVector<ScannedPack> &scanned);

/// The bits of a pack's number, where all packs of this lane are at hand: the
/// packs of the scan.
llvm::SmallVector<mlir::Value>
scanAcrossPacks(mlir::OpBuilder &b, const RowLayout &layout, ScanOp op,
                llvm::ArrayRef<ScannedPack> scanned);

/// How many these bits are.
int64_t countPackBits(const RowLayout &layout, ScanOp op);

/// The same in a walk over the packs, of which this is number `step`, index.
/// `totals`, a buffer of one element for each bit, keeps the left half that was
/// last complete.
mlir::Value scanAcrossSteps(mlir::OpBuilder &b, const RowLayout &layout,
                            ScanOp op, ScannedPack scanned, mlir::Value step,
                            mlir::Value totals);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ROWS_ROWSCAN_H
