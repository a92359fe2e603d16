//===- RowRange.h - the rows that one call has to do ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GRID_ROWRANGE_H
#define MLAFIX_TRANSFORMS_GRID_ROWRANGE_H

#include "dialect/Mlafix.h"
#include "mlir/IR/Builders.h"

namespace mlafix {

/// The rows `[begin, end)`, of type index.
struct RowRange {
  mlir::Value begin, end;
};

/// Appends the arguments `begin` and `end`, the rows that a call processes.
RowRange addRowRange(KernelOp kernel);

/// Records the geometry of a dense grid; ranges are preferably multiples of
/// `rows`.
void setRangeGeometry(KernelOp kernel, ForallOp forall, int64_t rows);

/// Replaces `forall` by a loop over the rows of `range`.
void buildRowLoop(ForallOp forall, RowRange range);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GRID_ROWRANGE_H
