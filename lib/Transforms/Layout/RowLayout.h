//===- RowLayout.h - distribution of a row over lanes -----------*- C++ -*-===//
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

/// The position of a pack in a row. In a row along a bounded dim, only packs
/// below the size of the dim exist. The packs of such a row are single elements
/// unless the size is known to be a multiple of a larger pack.
struct PackPosition {
  mlir::Value start; ///< index of the pack's first element in the row
  /// True (i1) if the pack is inside the row; null if true in every lane.
  mlir::Value exists;
  /// True (i1) if this lane stores the pack; null if true in every lane.
  mlir::Value stores;
};

/// The distribution of a kernel's rows over lanes, and the part of a row that
/// belongs to this thread's lane. On a CPU a row has one lane.
struct RowLayout {
  /// Creates the layout of a kernel whose grid has been lowered.
  explicit RowLayout(KernelOp kernel);

  mutable KernelOp kernel;
  LayoutAttr layout;
  mlir::ArrayAttr guards;
  bool isGPU;
  /// This thread's lane in its row, index; null if rows have one lane.
  mlir::Value lane;
  /// The mask of this row's lanes in their warp, i32; null if the lanes never
  /// synchronise.
  mlir::Value mask;
  /// True if in every warp either all rows exist or none.
  bool hasWholeWarps = false;

  /// Returns the mask (i32) of the threads that exchange values at `op`. It is
  /// the whole warp if all its threads are statically known to reach `op`.
  mlir::Value maskAt(mlir::OpBuilder &b, mlir::Operation *op) const;

  /// Returns the number of elements in a pack of a row tile.
  int64_t packOf(mlir::Type tile) const {
    return layout.packFor(getTileDim(tile));
  }
  /// Returns the number of packs of a row tile that each lane has.
  int64_t packsOf(mlir::Type tile) const {
    return layout.packsFor(getTileDim(tile));
  }
  /// Returns the vector type of a pack of a row tile. Its elements have the
  /// type `element`, by default that of the tile.
  mlir::VectorType packType(mlir::Type tile) const {
    return packType(tile, mlir::getElementTypeOrSelf(tile));
  }
  mlir::VectorType packType(mlir::Type tile, mlir::Type element) const {
    return mlir::VectorType::get({packOf(tile)}, element);
  }

  /// Builds the position of pack `p` of this lane in a row of type `tile`.
  PackPosition positionOf(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Type tile, int64_t p) const;

  /// Return the end and the step of a walk from 0 over all packs of a row. In
  /// each step, every lane has one pack.
  int64_t walkEnd(mlir::Type tile) const;
  int64_t walkStep(mlir::Type tile) const;
  /// Builds the position of this lane's pack in the step of a walk that starts
  /// at `base`. The walk goes on in units of `atOnce` steps, so it may go
  /// beyond the row's end.
  PackPosition positionAt(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Type tile, mlir::Value base,
                          int64_t atOnce) const;

  /// Returns the number of packs that this lane has of one group of `dim`, a
  /// product. Returns 1 if a lane has at most one pack of a group.
  int64_t packsOfGroup(DimAttr dim) const {
    int64_t packs = dim.getGroupPacks(layout.getPack());
    return packs % layout.getLanes() == 0 ? packs / layout.getLanes() : 1;
  }

  /// Returns the alignment in bytes of accesses to packs of `memref`: the size
  /// of a pack, but at most the alignment that the guards give the argument.
  /// Returns the size of an element if `memref` is no argument. Packs are
  /// counted from element `first` of the row in memory.
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

  /// Returns true if stores to `memref` should bypass the caches, because the
  /// caches cannot hold all that is written.
  bool isStreamed(mlir::Value memref) const {
    mlir::BlockArgument argument = getKernelArgument(memref);
    return argument && isGuardedBeyondCache(guards, argument.getArgNumber());
  }

private:
  /// Returns the number of elements before the last part of a row along `dim`.
  /// Returns 0 for rows that are not in parts.
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
