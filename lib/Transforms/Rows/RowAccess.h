//===- RowAccess.h - moving and combining parts of a row --------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_ROWS_ROWACCESS_H
#define MLAFIX_TRANSFORMS_ROWS_ROWACCESS_H

#include "lib/Transforms/Layout/RowLayout.h"

namespace mlafix {

/// Checks that all rows of `kernel` can be processed pack by pack: its grid is
/// lowered, and no op needs a whole row.
llvm::LogicalResult verifyRowOps(KernelOp kernel);

/// Converts `value`, read from `source`, to the type of a load's `result`:
/// floats to f32 (N7), integers to the result's width, floats and booleans that
/// are only moved to their bits. Yields zero where `predicate` (may be null) is
/// false.
mlir::Value widen(mlir::OpBuilder &b, mlir::Location loc, mlir::Value source,
                  mlir::Type result, mlir::Value value, mlir::Value predicate);
/// Converts `value` to the element type of `target`: f32 to the float type
/// (N7); any number to a byte, by saturation; integers to the type of a dtype
/// variable, by sign extension or truncation.
mlir::Value narrow(mlir::OpBuilder &b, mlir::Location loc, mlir::Value target,
                   mlir::Value value);

/// Loads an element or a pack from `source` in its memory type (signless); zero
/// where the predicate (may be null) is false. Packs are counted from element
/// `first` of the row in memory.
mlir::Value readMemory(mlir::OpBuilder &b, mlir::Location loc,
                       const RowLayout &layout, mlir::Value predicate,
                       mlir::Type type, mlir::Value source,
                       mlir::ValueRange indices, int64_t first = 0);

/// Builds the ops of `write` in a branch on the predicate (null: without
/// branch).
void writeIf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value predicate,
             llvm::function_ref<void(mlir::OpBuilder &)> write);

/// True if `op` handles each pack of its rows independently: an access, splat,
/// iota, uniform constant, or elementwise op with one result.
bool isPackwise(mlir::Operation *op);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ROWS_ROWACCESS_H
