//===- RowReduce.h - reduction of a row to a scalar -------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_ROWS_ROWREDUCE_H
#define MLAFIX_TRANSFORMS_ROWS_ROWREDUCE_H

#include "lib/Transforms/Rows/RowAccess.h"

namespace mlafix {

// A reduction combines elements along the bits of their index, lowest bit
// first: within a pack, across lanes, across warps, across packs. The tree is
// the same for every layout (N9). A reduction of groups stops after the low
// bits, which number the elements in a group.

/// Combines `x` and `y`, scalars or vectors (elementwise), as one step of a
/// reduction of the kind `kind`.
mlir::Value combine(mlir::OpBuilder &b, mlir::Location loc, ReduceKind kind,
                    mlir::Value x, mlir::Value y);

/// Returns the neutral element of `combine` for `type`, which is f32 or an
/// integer.
mlir::TypedAttr neutralOf(ReduceKind kind, mlir::Type type);

/// The bits of the lane number along which partials are combined: from `first`
/// up to, but not including, `end` (powers of two). A row is combined along all
/// bits, a group along the low bits. A row with one element per group is
/// combined along the high bits only, since lanes that differ only in the low
/// bits hold equal values.
struct LaneBits {
  int64_t first = 1, end;
};
/// Returns the bits along which a row of dim `dim` is combined, or each of its
/// groups if `inGroups` is true.
LaneBits bitsOf(const RowLayout &layout, DimAttr dim, bool inGroups);

/// Stores the `partials` of every warp to shared memory, for all threads to
/// read, and returns the memory. The partials of one warp are adjacent. The
/// caller must place a barrier after the last read, since a loop may reuse the
/// memory.
mlir::Value shareAcrossWarps(mlir::OpBuilder &b, mlir::Location loc,
                             const RowLayout &layout,
                             mlir::ValueRange partials);

/// Reduces `values` by the tree of `mlafix.reduce`, which combines neighbours
/// first. A value without a neighbour stays as it is.
mlir::Value reduceTree(mlir::OpBuilder &b, mlir::Location loc, ReduceKind kind,
                       llvm::SmallVector<mlir::Value> values);

/// Reduces one pack of this lane to a scalar, as `op` specifies. Yields the
/// neutral element where `exists`, an i1, is false (null: always true).
mlir::Value reducePack(mlir::OpBuilder &b, const RowLayout &layout, ReduceOp op,
                       mlir::Value pack, mlir::Value exists);

/// Returns true if `op` is the maximum or minimum of a row of 16-bit floats, or
/// of their magnitudes, and the target has packed instructions for it.
bool isNarrowExtreme(ReduceOp op);

/// Reduces all packs of this lane to a scalar maximum or minimum. Combines
/// packs elementwise, then the halves of the result, so that mlafix-narrow-rows
/// can use packed instructions on 16-bit elements. The order does not affect
/// the result.
mlir::Value reduceInHalves(mlir::OpBuilder &b, const RowLayout &layout,
                           ReduceOp op, mlir::ValueRange packs);

/// Combines `partials`, one per pack of this lane, with the partials of all
/// other lanes of the row. A reduction of groups combines only lanes that share
/// the pack's group. `partials` then has one partial per pack, or a single
/// partial of all packs.
void reduceAcrossLanes(mlir::OpBuilder &b, const RowLayout &layout, ReduceOp op,
                       llvm::SmallVector<mlir::Value> &partials);

/// Combines `partials` across packs. Returns one value for a whole row. For a
/// result with one element per group, returns one value per pack that this lane
/// has of the result.
llvm::SmallVector<mlir::Value>
reduceAcrossPacks(mlir::OpBuilder &b, const RowLayout &layout, ReduceOp op,
                  llvm::ArrayRef<mlir::Value> partials);

/// Returns a pack of the result of `op`. `element` is the corresponding pack of
/// the operand of `op`, a row with one element per group.
mlir::Value broadcastElement(mlir::OpBuilder &b, const RowLayout &layout,
                             BroadcastOp op, mlir::Value element);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ROWS_ROWREDUCE_H
