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

// A reduction combines elements along the bits of their index, lowest first:
// within a pack, across lanes, across warps, across packs. The tree is the same
// for every layout (N9). Reductions of groups stop after the low bits, which
// number the elements in a group.

/// A single step of a reduction, for scalars or elementwise.
mlir::Value combine(mlir::OpBuilder &b, mlir::Location loc, ReduceKind kind,
                    mlir::Value x, mlir::Value y);

/// The neutral element of `combine` for `type`, f32 or an integer.
mlir::TypedAttr neutralOf(ReduceKind kind, mlir::Type type);

/// A range of lane-number bits, from `first` up to `end` (powers of two), along
/// which partials are combined. A row is combined along all bits, a group along
/// the low ones. Rows with one element per group are equal in all lanes that
/// differ only in the low bits.
struct LaneBits {
  int64_t first = 1, end;
};
/// The bits of a row along `dim`, or with `inGroups` of each of its groups.
LaneBits bitsOf(const RowLayout &layout, DimAttr dim, bool inGroups);

/// Stores the `partials` of every warp to shared memory, those of a warp
/// adjacent, for all threads to read. The last read must be followed by a
/// barrier, since a loop may reuse the memory.
mlir::Value shareAcrossWarps(mlir::OpBuilder &b, mlir::Location loc,
                             const RowLayout &layout,
                             mlir::ValueRange partials);

/// Reduces `values` by the tree of `mlafix.reduce`: neighbours first; a missing
/// neighbour is neutral.
mlir::Value reduceTree(mlir::OpBuilder &b, mlir::Location loc, ReduceKind kind,
                       llvm::SmallVector<mlir::Value> values);

/// Reduces one pack of this lane by `op` to a scalar; neutral where the pack
/// does not exist (null: it exists).
mlir::Value reducePack(mlir::OpBuilder &b, const RowLayout &layout, ReduceOp op,
                       mlir::Value pack, mlir::Value exists);

/// True if `op` is the extreme of a row of 16-bit floats (or of their
/// magnitudes) and the target has packed instructions for it.
bool isNarrowExtreme(ReduceOp op);

/// The extreme of all packs of this lane, a scalar: combines packs elementwise,
/// then halves, so that mlafix-narrow-rows can use packed instructions on
/// the narrow elements. The order does not affect the result.
mlir::Value reduceInHalves(mlir::OpBuilder &b, const RowLayout &layout,
                           ReduceOp op, mlir::ValueRange packs);

/// Replaces this lane's `partials`, one per pack, by those of all lanes of the
/// row (or of the pack's group).
void reduceAcrossLanes(mlir::OpBuilder &b, const RowLayout &layout, ReduceOp op,
                       llvm::SmallVector<mlir::Value> &partials);

/// Combines partials across packs. Returns one value, or one per pack of this
/// lane for a row with one element per group.
llvm::SmallVector<mlir::Value>
reduceAcrossPacks(mlir::OpBuilder &b, const RowLayout &layout, ReduceOp op,
                  llvm::ArrayRef<mlir::Value> partials);

/// The pack of the result of `op`, given `element`, the pack of its operand, a
/// row with one element per group.
mlir::Value broadcastElement(mlir::OpBuilder &b, const RowLayout &layout,
                             BroadcastOp op, mlir::Value element);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ROWS_ROWREDUCE_H
