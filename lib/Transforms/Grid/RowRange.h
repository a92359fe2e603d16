//===- RowRange.h - the rows that one call processes ------------*- C++ -*-===//
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

/// The rows from `begin` up to, but not including, `end`, both of type index.
struct RowRange {
  mlir::Value begin, end;
};

/// Adds the arguments `begin` and `end` to `kernel`, and returns them. A call
/// processes the rows between them.
RowRange addRowRange(KernelOp kernel);

/// Records the geometry of the dense grid `forall` in `kernel`. The number of
/// rows of a call should be a multiple of `rows`.
void setRangeGeometry(KernelOp kernel, ForallOp forall, int64_t rows);

/// Replaces `forall` by a loop over the rows of `range`.
void buildRowLoop(ForallOp forall, RowRange range);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GRID_ROWRANGE_H
