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

/// Where a pack is. Of a row along a dim with a bound, the packs below the
/// dim's size exist: single elements, unless the size is a multiple of more.
struct PackPosition {
  mlir::Value start;  ///< its first element in the row, index
  mlir::Value exists; ///< whether the row has it, i1; null: in every lane
  mlir::Value stores; ///< whether it is this lane's to store, i1; null: it is
};

/// How the rows of a kernel are shared out, and which share is this thread's.
/// On a CPU a row has one lane.
struct RowLayout {
  /// Of a kernel whose grid has been replaced.
  explicit RowLayout(KernelOp kernel);

  mutable KernelOp kernel;
  LayoutAttr layout;
  mlir::ArrayAttr guards;
  bool isGPU;
  /// This thread's lane in its row, index; null when there is one lane.
  mlir::Value lane;
  /// The mask of this row's lanes in their warp, i32; null where they never
  /// synchronise.
  mlir::Value mask;
  /// True if all rows of a warp exist or none.
  bool hasWholeWarps = false;

  /// The threads that exchange values at `op` of a row's program, i32: all of
  /// the warp where they all come there, which is known without a computation.
  mlir::Value maskAt(mlir::OpBuilder &b, mlir::Operation *op) const;

  /// Elements of a pack of a row tile.
  int64_t packOf(mlir::Type tile) const {
    return layout.packFor(getTileDim(tile));
  }
  /// Packs that a lane holds of a row tile.
  int64_t packsOf(mlir::Type tile) const {
    return layout.packsFor(getTileDim(tile));
  }
  /// The type of a pack of a row tile, of the tile's elements or others.
  mlir::VectorType packType(mlir::Type tile) const {
    return packType(tile, mlir::getElementTypeOrSelf(tile));
  }
  mlir::VectorType packType(mlir::Type tile, mlir::Type element) const {
    return mlir::VectorType::get({packOf(tile)}, element);
  }

  /// Where pack `p` of this lane is in a row of type `tile`.
  PackPosition positionOf(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Type tile, int64_t p) const;

  /// A walk over the packs of all lanes, at once one of each: from 0 to
  /// `walkEnd` in steps of `walkStep`.
  int64_t walkEnd(mlir::Type tile) const;
  int64_t walkStep(mlir::Type tile) const;
  /// Where this lane's pack is at `base` of a walk, index.
  PackPosition positionAt(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Type tile, mlir::Value base) const;

  /// Packs of this lane that lie in one group of `dim`, a product: 1 where a
  /// group has at most one in each lane.
  int64_t packsOfGroup(DimAttr dim) const {
    int64_t packs = dim.getGroupPacks(layout.getPack());
    return packs % layout.getLanes() == 0 ? packs / layout.getLanes() : 1;
  }

  /// The alignment in bytes that an access to a pack of `memref` may assume. A
  /// guard is about packs of the argument's own size, or larger ones. `first`
  /// is the element of the memory's row that packs are counted from.
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

  /// True if stores to `memref` should bypass the caches, which cannot hold all
  /// of what is written.
  bool isStreamed(mlir::Value memref) const {
    mlir::BlockArgument argument = getKernelArgument(memref);
    return argument && isGuardedBeyondCache(guards, argument.getArgNumber());
  }

private:
  PackPosition positionFrom(mlir::OpBuilder &b, mlir::Location loc, DimAttr dim,
                            mlir::Value base, bool isInside) const;
  PackPosition positionInGroups(mlir::OpBuilder &b, mlir::Location loc,
                                DimAttr dim, mlir::Value place) const;
  PackPosition positionOfElement(mlir::OpBuilder &b, mlir::Location loc,
                                 DimAttr dim, mlir::Value pack) const;
};

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LAYOUT_ROWLAYOUT_H
