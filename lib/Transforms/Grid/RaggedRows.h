//===- RaggedRows.h - rows selected by a ragged grid ------------*- C++ -*-===//
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
/// share each row and take turns over the row's inner indices.
struct RowBundle {
  int64_t rows;
  int64_t perRow;   ///< threads or lane groups per row
  mlir::Value slot; ///< number of this thread's row in the bundle, i32
  /// Number of this thread or lane group within the row, i32.
  mlir::Value place;
  mlir::Value block; ///< number of the block, i32
  /// The bundle is scattered if a chunk has at least this many rows per segment
  /// on average. If it is 0, the bundle is never scattered. Neighbouring blocks
  /// process neighbouring parts of a scattered bundle, instead of a bundle
  /// each. A part has as many inner indices as the bundle has threads or lane
  /// groups per row (`perRow`).
  int64_t scatteredRows = 0;

  // RaggedRows sets the following members.

  /// Shared memory with one i32 per row of the block's first bundle. If the row
  /// is the first one of a segment in the bundle, the i32 is 1 + the position
  /// of this segment, else 0. Null if a bundle has too many rows.
  mlir::Value marks = {};
  mlir::Value first = {}; ///< number of the block's first bundle, i32
  /// The binary logarithm of the number of blocks per bundle, i32.
  mlir::Value shared = {};
};

/// Distributes the selected rows of a chunk over the blocks of a grid. A chunk
/// is a list of segments; the rows of its selected segments are numbered
/// consecutively. Shared memory holds two numbers for each segment of the
/// chunk: the number of selected rows before the segment, and the difference
/// between the index of a row of the segment and the row's number.
///
/// A binary search converts a row number to a (position, row) pair. The first
/// bundle of a block needs no search, because threads mark where their segments
/// begin in this bundle. If there are fewer bundles than blocks, or if the
/// bundle is scattered, several blocks share the inner indices of a bundle.
class RaggedRows {
public:
  /// Prepares chunks of `positions` segments (a power of two). The inner
  /// indices have the extents `inner`.
  RaggedRows(mlir::OpBuilder &b, mlir::Location loc, int64_t positions,
             mlir::ValueRange inner, mlir::Value threadId);

  void addBundle(RowBundle &bundle);
  /// Discards the previous chunk. The caller must place a barrier between
  /// clear() and publish().
  void clear();
  /// Publishes the segments of this thread, from `position` in the chunk on.
  /// Segment k has `lengths[k]` (i32) rows from row `starts[k]` (index) on.
  /// `before` (i32) is the number of rows in all preceding segments of the
  /// chunk, `total` (i32) the number in all segments. The caller must place a
  /// barrier between publish() and forEachRow().
  void publish(mlir::Value position, llvm::ArrayRef<mlir::Value> starts,
               llvm::ArrayRef<mlir::Value> lengths, mlir::Value before,
               mlir::Value total);
  /// Calls `body` with the position, the row and the inner indices of each
  /// (row, inner index) pair of this thread. All threads of the block must
  /// execute this code.
  void forEachRow(const RowBundle &bundle,
                  llvm::function_ref<void(mlir::Value position, mlir::Value row,
                                          mlir::ValueRange inner)>
                      body);

  /// Adds two i32 lengths. A sum above INT32_MAX becomes INT32_MAX.
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

  /// Builds an i1 that is true if `segment`, which must exist, is selected.
  mlir::Value isSelected(mlir::Value segment) {
    return build(segment, /*checksBounds=*/true);
  }

  /// Builds an i1 that is true if any of the segments base + member + i * step
  /// is selected, where i < count and the segment number is below `segments`.
  /// All threads of a block pass the same `base`.
  mlir::Value isAnySelected(mlir::Value base, mlir::Value member, int64_t count,
                            int64_t step, mlir::Value segments);

private:
  /// A bound on the segment number. All segments before `end` satisfy it if
  /// `end + ahead` compares with `limit` as `comparison` says.
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
  mlir::Value build(mlir::Value segment, bool checksBounds);
  mlir::Value endsWithin(mlir::Value end, mlir::Value segments, bool isWithin);

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Block &predicate;
  /// The loads whose predicate is a bound on the segment number.
  llvm::SmallVector<BoundedLoad> bounded;
};

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GRID_RAGGEDROWS_H
