//===- RaggedRows.h - the rows that a chunk of segments selects -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GPU_RAGGEDROWS_H
#define MLAFIX_TRANSFORMS_GPU_RAGGEDROWS_H

#include "dialect/Mlafix.h"
#include "lib/Transforms/IndexBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlafix {

/// The work of a block at one time: some rows, each by some threads or lane
/// groups, which take the row's inner indices in turn.
struct RowBundle {
  int64_t rows;
  int64_t perRow;    ///< threads or lane groups of a row
  mlir::Value slot;  ///< the row of this thread, i32
  mlir::Value place; ///< of this thread or lane group in the row, i32
  mlir::Value block; ///< the number of the block, i32
  /// Where a chunk has so many rows for each of its positions, the bundle is
  /// scattered: neighbouring blocks take neighbouring parts of it, rather than
  /// a bundle each. A part is as many inner indices as the bundle has threads
  /// or lane groups for. 0: never.
  int64_t scatteredRows = 0;

  // The additions of RaggedRows.

  /// By row: 1 + the position of the segment that has its first row there, or
  /// 0. Null where there are too many rows.
  mlir::Value marks = {};
  mlir::Value first = {}; ///< the block's first bundle, i32
  /// log2 of the number of blocks that share a bundle, i32.
  mlir::Value shared = {};
};

/// The rows of the selected segments of a chunk, numbered through, shared out
/// over the blocks of a grid. Each position of the chunk has the prefix sum of
/// the lengths before it in shared memory, and what makes a number a row.
///
/// A row number becomes a (position, row) by a binary search. For the first
/// bundle of a block there is no need: threads whose segments meet it mark
/// where. Where there are fewer bundles than blocks, blocks share a bundle's
/// inner indices; where the bundle is scattered, always.
class RaggedRows {
public:
  /// For chunks of `positions` (a power of two) segments, `inner` the extents
  /// of the inner indices.
  RaggedRows(mlir::OpBuilder &b, mlir::Location loc, int64_t positions,
             mlir::ValueRange inner, mlir::Value threadId);

  void addBundle(RowBundle &bundle);
  /// Discards the previous chunk; a barrier comes between this and `publish`.
  void clear();
  /// Says what this thread's segments hold: at `position` and the following,
  /// rows from `starts` (index) on, `lengths` (i32) of them; `before` and
  /// `total` (i32) are the lengths before these and of all. A barrier comes
  /// between this and `forEachRow`.
  void publish(mlir::Value position, llvm::ArrayRef<mlir::Value> starts,
               llvm::ArrayRef<mlir::Value> lengths, mlir::Value before,
               mlir::Value total);
  /// Calls `body` with the position, the row and the inner indices of each pair
  /// of row and inner indices that this thread is to do. Must be built where
  /// all threads of the block execute it.
  void forEachRow(const RowBundle &bundle,
                  llvm::function_ref<void(mlir::Value position, mlir::Value row,
                                          mlir::ValueRange inner)>
                      body);

  /// Lengths add up with saturation.
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

/// The predicate of a ragged grid, as code at the builder's insertion point.
class SegmentPredicate {
public:
  SegmentPredicate(mlir::OpBuilder &b, RaggedForallOp grid);

  /// True if the segment, which exists, is selected.
  mlir::Value isSelected(mlir::Value segment) {
    return build(segment, /*isBounded=*/true);
  }

  /// True if one of the segments base + member + i step for i < count is
  /// selected, of those below `segments`, all with the bases of one strip.
  mlir::Value isAnySelected(mlir::Value base, mlir::Value member, int64_t count,
                            int64_t step, mlir::Value segments);

private:
  /// Holds for all segments before `end` if end + ahead compares so with the
  /// limit.
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
  /// The loads whose own predicates are bounds of the segment's number.
  llvm::SmallVector<BoundedLoad> bounded;
};

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GPU_RAGGEDROWS_H
