//===- RowLayout.h - which packs of a row a lane has ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LAYOUT_ROWLAYOUT_H
#define MLAFIX_TRANSFORMS_LAYOUT_ROWLAYOUT_H

#include "dialect/Guards.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/Target.h"

namespace mlafix {

/// The position of a pack. In a row along a bounded dim, only packs below the
/// dim's size exist; they are single elements unless the size is a multiple of
/// a larger pack.
struct PackPosition {
  mlir::Value start;  ///< index of its first element in the row
  mlir::Value exists; ///< i1: it is inside the row; null: true in every lane
  mlir::Value stores; ///< i1: this lane stores it; null: true
};

/// The distribution of a kernel's rows, and this thread's share of them. On a
/// CPU a row has one lane.
struct RowLayout {
  /// The layout of a kernel whose grid has been lowered.
  explicit RowLayout(KernelOp kernel);

  mutable KernelOp kernel;
  LayoutAttr layout;
  mlir::ArrayAttr guards;
  bool isGPU;
  /// This thread's lane in its row, index; null if there is one lane.
  mlir::Value lane;
  /// The mask of this row's lanes in their warp, i32; null if they never
  /// synchronise.
  mlir::Value mask;
  /// True if in every warp either all rows exist or none.
  bool hasWholeWarps = false;

  /// The mask (i32) of the threads that exchange values at `op`: the whole warp
  /// if it is known statically that all of it gets there.
  mlir::Value maskAt(mlir::OpBuilder &b, mlir::Operation *op) const;

  /// Elements per pack of a row tile.
  int64_t packOf(mlir::Type tile) const {
    return layout.packFor(getTileDim(tile));
  }
  /// Packs of a row tile per lane.
  int64_t packsOf(mlir::Type tile) const {
    return layout.packsFor(getTileDim(tile));
  }
  /// The vector type of a pack of a row tile, with the tile's elements or
  /// others.
  mlir::VectorType packType(mlir::Type tile) const {
    return packType(tile, mlir::getElementTypeOrSelf(tile));
  }
  mlir::VectorType packType(mlir::Type tile, mlir::Type element) const {
    return mlir::VectorType::get({packOf(tile)}, element);
  }

  /// The position of pack `p` of this lane in a row of type `tile`.
  PackPosition positionOf(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Type tile, int64_t p) const;

  /// A walk over all packs, in which each lane processes one pack per step:
  /// from 0 to `walkEnd` in steps of `walkStep`.
  int64_t walkEnd(mlir::Type tile) const;
  int64_t walkStep(mlir::Type tile) const;
  /// The position of this lane's pack at `base` of a walk.
  PackPosition positionAt(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Type tile, mlir::Value base) const;

  /// The number of this lane's packs in one group of `dim`, a product; 1 if a
  /// group has at most one pack per lane.
  int64_t packsOfGroup(DimAttr dim) const {
    int64_t packs = dim.getGroupPacks(layout.getPack());
    return packs % layout.getLanes() == 0 ? packs / layout.getLanes() : 1;
  }

  /// The alignment in bytes of accesses to packs of `memref`. Guards concern
  /// packs of the argument's own size or larger. Packs are counted from element
  /// `first` of the row in memory.
  int64_t alignmentOf(mlir::Value memref, mlir::VectorType pack,
                      int64_t first = 0) const {
    int64_t bytes = getDTypeBytes(pack.getElementType());
    mlir::BlockArgument argument = getKernelArgument(memref);
    if (!argument)
      return bytes;
    int64_t before = first * getDTypeBits(pack.getElementType()) / 8;
    if (before)
      return std::min(before & -before, alignmentOf(memref, pack));
    return std::min(
        std::max(bytes, pack.getNumElements() *
                            getDTypeBits(pack.getElementType()) / 8),
        std::max(bytes, getGuardedAlignment(guards, argument.getArgNumber())));
  }

  /// True if stores to `memref` should bypass the caches, because these cannot
  /// hold all that is written.
  bool isStreamed(mlir::Value memref) const {
    mlir::BlockArgument argument = getKernelArgument(memref);
    return argument && isGuardedBeyondCache(guards, argument.getArgNumber());
  }

private:
  /// Elements before the last part of a row along `dim`; 0 for rows that are
  /// not in parts.
  int64_t beforeLastPart(DimAttr dim) const {
    return (layout.getParts() - 1) * layout.partFor(dim);
  }
  PackPosition positionFrom(mlir::OpBuilder &b, mlir::Location loc, DimAttr dim,
                            mlir::Value base, bool isInside) const;
  PackPosition positionInGroups(mlir::OpBuilder &b, mlir::Location loc,
                                DimAttr dim, mlir::Value place) const;
  PackPosition positionOfElement(mlir::OpBuilder &b, mlir::Location loc,
                                 DimAttr dim, mlir::Value pack) const;
};

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LAYOUT_ROWLAYOUT_H
