//===- SegmentPredicate.h - whether segments are selected -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GPU_SEGMENTPREDICATE_H
#define MLAFIX_TRANSFORMS_GPU_SEGMENTPREDICATE_H

#include "dialect/Mlafix.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlafix {

/// The predicate of a ragged grid, as code at the builder's insertion point.
class SegmentPredicate {
public:
  SegmentPredicate(mlir::OpBuilder &b, RaggedForallOp grid);

  /// Whether the segment, which exists, is selected.
  mlir::Value isSelected(mlir::Value segment) {
    return build(segment, /*isBounded=*/true);
  }

  /// Whether one of the segments base + member + i step for i < count is
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

#endif // MLAFIX_TRANSFORMS_GPU_SEGMENTPREDICATE_H
