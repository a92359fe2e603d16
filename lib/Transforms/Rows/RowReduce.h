//===- RowReduce.h - a row to one scalar ------------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_ROWS_ROWREDUCE_H
#define MLAFIX_TRANSFORMS_ROWS_ROWREDUCE_H

#include "lib/Transforms/Rows/RowAccess.h"

namespace mlafix {

// A row is reduced along the bits of the element's index, lowest first: within
// a pack, across lanes, across warps, across packs. The tree is the same for
// every layout (N9). A group has the low bits: what lies beyond them is left
// alone where each group is reduced to an element.

/// One step of a reduction, of scalars or element by element.
mlir::Value combine(mlir::OpBuilder &b, mlir::Location loc, ReduceKind kind,
                    mlir::Value x, mlir::Value y);

/// The neutral element of `combine` for `type`, f32 or an integer.
mlir::TypedAttr neutralOf(ReduceKind kind, mlir::Type type);

/// The lanes whose partials meet, as bits of the difference of their numbers:
/// those from `first` up to `end`, powers of two. All bits are those of a row;
/// the lanes of a group have the low ones, and the rows of one element a group
/// are alike in these.
struct LaneBits {
  int64_t first = 1, end;
};
/// Of a row along `dim`, or of each of its groups.
LaneBits bitsOf(const RowLayout &layout, DimAttr dim, bool inGroups);

/// `partials` of every warp in shared memory, those of a warp next to each
/// other, for all threads to read. A barrier must follow the last read: a loop
/// may come back to this memory.
mlir::Value shareAcrossWarps(mlir::OpBuilder &b, mlir::Location loc,
                             const RowLayout &layout,
                             mlir::ValueRange partials);

/// The reduction of `values` by the tree of `mlafix.reduce`: neighbours first;
/// a missing neighbour is neutral.
mlir::Value reduceTree(mlir::OpBuilder &b, mlir::Location loc, ReduceKind kind,
                       llvm::SmallVector<mlir::Value> values);

/// The reduction by `op` of one pack of this lane, a scalar: neutral where the
/// pack does not exist (null: it always does).
mlir::Value reducePack(mlir::OpBuilder &b, const RowLayout &layout, ReduceOp op,
                       mlir::Value pack, mlir::Value exists);

/// True if `op` is the extreme of a row of floats of 16 bits, or of their
/// magnitudes, and the target has instructions for two of them.
bool isNarrowExtreme(ReduceOp op);

/// The extreme of all packs of this lane, a scalar: of the packs element by
/// element, then of halves, so that mlafix-delay-widening can compute it of the
/// narrow elements, two at once. The order makes no difference.
mlir::Value reduceInHalves(mlir::OpBuilder &b, const RowLayout &layout,
                           ReduceOp op, mlir::ValueRange packs);

/// Replaces this lane's `partials`, one for each pack, by those of all lanes of
/// the row, or of the pack's group, together.
void reduceAcrossLanes(mlir::OpBuilder &b, const RowLayout &layout, ReduceOp op,
                       llvm::SmallVector<mlir::Value> &partials);

/// Of these: one value, or one for each pack that this lane has of a row of one
/// element a group.
llvm::SmallVector<mlir::Value>
reduceAcrossPacks(mlir::OpBuilder &b, const RowLayout &layout, ReduceOp op,
                  llvm::ArrayRef<mlir::Value> partials);

/// A pack of the row that `op` makes, of `element`, the pack of the row of one
/// element a group that it is made of.
mlir::Value broadcastElement(mlir::OpBuilder &b, const RowLayout &layout,
                             BroadcastOp op, mlir::Value element);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ROWS_ROWREDUCE_H
