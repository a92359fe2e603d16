//===- RowAccess.h - conversion of and access to parts of a row -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_ROWS_ROWACCESS_H
#define MLAFIX_TRANSFORMS_ROWS_ROWACCESS_H

#include "lib/Transforms/Layout/RowLayout.h"

namespace mlafix {

/// Checks that all rows of `kernel` can be processed pack by pack: the grid is
/// lowered, and no op needs a whole row.
llvm::LogicalResult verifyRowOps(KernelOp kernel);

/// Converts `value`, read from `source`, to the element type of `result`, the
/// type of a load. Floats become f32 (N7), and integers get the width of
/// `result`. Exception: floats and booleans that the kernel only moves become
/// integers with the same bits. Yields zero where `predicate` is false (null:
/// always true).
mlir::Value widen(mlir::OpBuilder &b, mlir::Location loc, mlir::Value source,
                  mlir::Type result, mlir::Value value, mlir::Value predicate);
/// Converts `value` to the element type of the memref `target`. f32 becomes the
/// float type of `target` (N7). A number stored to a byte saturates. An integer
/// stored to a dtype variable is sign-extended or truncated.
mlir::Value narrow(mlir::OpBuilder &b, mlir::Location loc, mlir::Value target,
                   mlir::Value value);

/// Loads an element or a pack of the memory type `type` from `source`. The
/// result has the signless form of this type. Yields zero where `predicate` is
/// false (null: always true). `first` is the element of the row from which
/// packs are counted; the alignment depends on it.
mlir::Value readMemory(mlir::OpBuilder &b, mlir::Location loc,
                       const RowLayout &layout, mlir::Value predicate,
                       mlir::Type type, mlir::Value source,
                       mlir::ValueRange indices, int64_t first = 0);

/// Extracts the elements of `pack`, in order.
llvm::SmallVector<mlir::Value> toElements(mlir::OpBuilder &b,
                                          mlir::Location loc, mlir::Value pack);

/// Builds the ops of `write`, in a branch on `predicate` if that is not null.
void writeIf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value predicate,
             llvm::function_ref<void(mlir::OpBuilder &)> write);

/// Returns true if `op` handles each pack of its rows independently. Such an op
/// is an access, a splat, an iota, a uniform constant, or an elementwise op
/// with one result.
bool isPackwise(mlir::Operation *op);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ROWS_ROWACCESS_H
