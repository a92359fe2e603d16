//===- LongRows.h - which rows are walked in loops --------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LAYOUT_LONGROWS_H
#define MLAFIX_TRANSFORMS_LAYOUT_LONGROWS_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// True if `op` takes or gives a row.
bool isTileOp(mlir::Operation *op);

/// A row tile that `op` takes or gives, all of which are along one dim; of a
/// broadcast and of a reduction of groups the row of groups. Null where there
/// is none.
mlir::Type getTile(mlir::Operation *op);

/// Bytes of a row like the tile `tile` in memory, of elements of `element`.
int64_t getRowBytes(mlir::Type tile, mlir::Type element);

/// True if `op` costs nothing to do again wherever its row is needed.
bool isUniform(mlir::Operation *op);

/// Elements of a row that a lane of `kernel` should hold or keep at most.
int64_t getMostKept(KernelOp kernel);

/// True if a lane has more of a row tile of `kernel` than that: such a row is
/// made again where it is used again, if that can be.
bool isTooLongToKeep(KernelOp kernel, mlir::Type tile);

/// True if the rows of `kernel` are walked in loops over their packs: not those
/// of a kernel in which scf.while carries rows, or lane groups share them.
/// Keeping rows in buffers (mlafix-spill-rows) adds to their ops, and does not
/// change a yes.
bool walksRows(KernelOp kernel);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LAYOUT_LONGROWS_H
