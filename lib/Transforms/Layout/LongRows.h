//===- LongRows.h - rows that are processed in loops ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LAYOUT_LONGROWS_H
#define MLAFIX_TRANSFORMS_LAYOUT_LONGROWS_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// Returns true if `op` has a row operand or result.
bool isTileOp(mlir::Operation *op);

/// Returns the type of the rows of `op`, which all have the same dim. For
/// broadcasts and reductions of groups, returns the type of the row that
/// consists of groups. Returns null if `op` has no rows.
mlir::Type getTile(mlir::Operation *op);

/// Returns the bytes in memory of a row of type `tile` with elements of type
/// `element`.
int64_t getRowBytes(mlir::Type tile, mlir::Type element);

/// Returns true if repeating `op` wherever its row is needed costs nothing.
bool isUniform(mlir::Operation *op);

/// Returns true if each pack of `elements` elements of the result of `load` is
/// one pack of the row in memory. Otherwise elements are read one by one.
bool readsPacks(LoadIntoOp load, int64_t elements);

/// Returns the largest number of elements of a row that a lane of `kernel`
/// should keep, by its plan (`kept_elements`).
int64_t getMostKept(KernelOp kernel);

/// Returns true if a lane has more than getMostKept() elements of `tile`. Such
/// rows are recomputed where they are used again, if possible.
bool isTooLongToKeep(KernelOp kernel, mlir::Type tile);

/// Returns how many packs of a row of dim `dim` a lane of `kernel` may process
/// in one iteration of a loop over packs, a power of two, by its plan
/// (`loop_elements`). The last iteration lacks at most an eighth of all packs;
/// in a layout in parts, it lacks none.
int64_t countPacksAtOnce(KernelOp kernel, DimAttr dim);

/// Returns the most packs of `pack` elements of an iteration that should have
/// `elements` elements, a power of two: at least one, and at most a quarter of
/// all `packs`, since a loop is to be shorter than what it replaces.
int64_t limitPacksAtOnce(int64_t packs, int64_t elements, int64_t pack);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LAYOUT_LONGROWS_H
