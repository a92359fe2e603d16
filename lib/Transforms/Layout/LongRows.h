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
/// should keep.
int64_t getMostKept(KernelOp kernel);

/// Returns true if a lane has more than getMostKept() elements of `tile`. Such
/// rows are recomputed where they are used again, if possible.
bool isTooLongToKeep(KernelOp kernel, mlir::Type tile);

/// Returns true if the rows of `kernel` are processed in loops over packs, and
/// false if scf.while carries rows or the layout has lane groups. Otherwise:
///
///   - On a CPU, returns true if a row has more than `loopPacks` packs.
///   - On a GPU, returns true if a row is too long to keep, or if the unrolled
///     program is long and a program with loops is shorter. Reductions that
///     depend on each other divide the loops, which makes the program longer.
///
/// The ops that mlafix-spill-rows adds never turn a result of true into false.
bool walksRows(KernelOp kernel);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LAYOUT_LONGROWS_H
