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

/// True if `op` has a row operand or result.
bool isTileOp(mlir::Operation *op);

/// The type of the rows of `op`, which all have the same dim. For broadcasts
/// and reductions of groups, the row of the groups. Null if there is none.
mlir::Type getTile(mlir::Operation *op);

/// Bytes in memory of a row of type `tile` with elements of type `element`.
int64_t getRowBytes(mlir::Type tile, mlir::Type element);

/// True if `op` costs nothing to repeat wherever its row is needed.
bool isUniform(mlir::Operation *op);

/// True if each pack of `elements` elements of the result of `load` is one pack
/// of the row that it reads. Otherwise elements are read one by one.
bool readsPacks(LoadIntoOp load, int64_t elements);

/// The most elements of a row that a lane of `kernel` should keep.
int64_t getMostKept(KernelOp kernel);

/// True if a lane has more elements of `tile` than that. Such rows are
/// rematerialised where they are used again, if possible.
bool isTooLongToKeep(KernelOp kernel, mlir::Type tile);

/// True if the rows of `kernel` are processed in loops over packs. False if
/// scf.while carries rows, or if lane groups share them. Also false if a lane
/// can hold the rows, and dependent reductions divide the loops so often that
/// the program would not be shorter. mlafix-spill-rows adds ops, but never
/// turns a true into false.
bool walksRows(KernelOp kernel);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LAYOUT_LONGROWS_H
