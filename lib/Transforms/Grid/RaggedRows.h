//===- RaggedRows.h - the rows that a chunk of segments selects -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GRID_RAGGEDROWS_H
#define MLAFIX_TRANSFORMS_GRID_RAGGEDROWS_H

#include "dialect/Mlafix.h"
#include "lib/Transforms/IndexBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlafix {

/// The rows that a block processes at a time. Several threads or lane groups
/// share each row: they take turns over its inner indices.
struct RowBundle {
  int64_t rows;
  int64_t perRow;    ///< threads or lane groups per row
  mlir::Value slot;  ///< this thread's row, i32
  mlir::Value place; ///< this thread or lane group within the row, i32
  mlir::Value block; ///< block number, i32
  /// If a chunk has this many rows per position, the bundle is scattered:
  /// neighbouring blocks process neighbouring parts of it instead of a bundle
  /// each. A part is as many inner indices as the bundle has threads or lane
  /// groups per row. 0: never.
  int64_t scatteredRows = 0;

  // Set by RaggedRows.

  /// Per row: 1 + the position of the segment that starts there, or 0. Null if
  /// there are too many rows.
  mlir::Value marks = {};
  mlir::Value first = {}; ///< the block's first bundle, i32
  /// log2 of the number of blocks per bundle, i32.
  mlir::Value shared = {};
};

/// Distributes the rows of a chunk's selected segments, numbered consecutively,
/// over the blocks of a grid. Shared memory holds, for each position of the
/// chunk, the prefix sum of the lengths before it and the offset from a number
/// to a row index.
///
/// A binary search converts a row number to a (position, row). The first bundle
/// of a block needs none, because threads mark where their segments begin in
/// it. Blocks share a bundle's inner indices if there are fewer bundles than
/// blocks, and always if the bundle is scattered.
class RaggedRows {
public:
  /// For chunks of `positions` (a power of two) segments and inner indices with
  /// extents `inner`.
  RaggedRows(mlir::OpBuilder &b, mlir::Location loc, int64_t positions,
             mlir::ValueRange inner, mlir::Value threadId);

  void addBundle(RowBundle &bundle);
  /// Discards the previous chunk. A barrier must separate this from publish().
  void clear();
  /// Publishes this thread's segments, at `position` and following: they
  /// contain `lengths` (i32) rows from `starts` (index) on. `before` and
  /// `total` (i32) are the sums of the lengths before these and of all. A
  /// barrier must separate this from forEachRow().
  void publish(mlir::Value position, llvm::ArrayRef<mlir::Value> starts,
               llvm::ArrayRef<mlir::Value> lengths, mlir::Value before,
               mlir::Value total);
  /// Calls `body` with position, row and inner indices for each (row, inner
  /// index) pair of this thread. All threads of the block must execute it.
  void forEachRow(const RowBundle &bundle,
                  llvm::function_ref<void(mlir::Value position, mlir::Value row,
                                          mlir::ValueRange inner)>
                      body);

  /// Adds lengths with saturation.
  mlir::Value saturatingAdd(mlir::Value a, mlir::Value c);

private:
  mlir::Value innerSize();
  void shareBundle(RowBundle &bundle);
  void mark(const RowBundle &bundle, mlir::Value position, mlir::Value before,
            mlir::Value end);
  mlir::Value findMarked(const RowBundle &bundle);
  mlir::Value search(mlir::Value number);
  mlir::Value endOf(mlir::Value position);

  mlir::OpBuilder &b;
  mlir::Location loc;
  IndexBuilder x;
  int64_t positions;
  llvm::SmallVector<mlir::Value> inner;
  mlir::Value threadId, prefix, shift, total;
  llvm::SmallVector<RowBundle *> bundles;
};

/// Builds the predicate of a ragged grid at the builder's insertion point.
class SegmentPredicate {
public:
  SegmentPredicate(mlir::OpBuilder &b, RaggedForallOp grid);

  /// True if the existing segment `segment` is selected.
  mlir::Value isSelected(mlir::Value segment) {
    return build(segment, /*isBounded=*/true);
  }

  /// True if any of the segments base + member + i * step, for i < count and
  /// below `segments`, is selected. All of these share the bases of one strip.
  mlir::Value isAnySelected(mlir::Value base, mlir::Value member, int64_t count,
                            int64_t step, mlir::Value segments);

private:
  /// A bound on segments: holds for all segments before `end` if end + ahead
  /// compares this way with the limit.
  struct Bound {
    mlir::arith::CmpIPredicate comparison;
    int64_t ahead;
    mlir::Value limit;
  };
  struct BoundedLoad {
    LoadOp load;
    Bound bound;
  };

  std::optional<Bound> getBound(LoadOp load) const;
  mlir::Value build(mlir::Value segment, bool isBounded);
  mlir::Value endsWithin(mlir::Value end, mlir::Value segments, bool isWithin);

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Block &predicate;
  /// Loads whose predicates are bounds on the segment number.
  llvm::SmallVector<BoundedLoad> bounded;
};

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GRID_RAGGEDROWS_H
