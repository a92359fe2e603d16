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

/// Checks that the rows of `kernel` can be done pack by pack: its grid has been
/// replaced, and no op takes a row as a whole.
llvm::LogicalResult verifyRowOps(KernelOp kernel);

/// The value read from `source` in the form of a load's `result`: floats widen
/// to f32 (N7), integers to the result's width; the bits of a float or a
/// boolean that is only moved, likewise. `value` is zero where `predicate`, if
/// there is one, is false.
mlir::Value widen(mlir::OpBuilder &b, mlir::Location loc, mlir::Value source,
                  mlir::Type result, mlir::Value value, mlir::Value predicate);
/// `value` as a store writes it to `target`: f32 becomes a float in memory
/// (N7), all but bytes a byte within its range, and an integer that of a dtype
/// variable, sign-extended or its low bits.
mlir::Value narrow(mlir::OpBuilder &b, mlir::Location loc, mlir::Value target,
                   mlir::Value value);

/// One element, or one pack, of `source`, as it is in memory (but for a sign,
/// which bodies do not know); zero where the predicate, if there is one, is
/// false. Packs are counted from element `first` of the memory's row.
mlir::Value readMemory(mlir::OpBuilder &b, mlir::Location loc,
                       const RowLayout &layout, mlir::Value predicate,
                       mlir::Type type, mlir::Value source,
                       mlir::ValueRange indices, int64_t first = 0);

/// The ops that `write` builds, under the predicate if there is one.
void writeIf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value predicate,
             llvm::function_ref<void(mlir::OpBuilder &)> write);

/// True if `op`, which takes or makes a row, does the same to each of its packs
/// apart from the others: an access, a splat, its indices, a constant of one
/// value, or an elementwise op with one result.
bool isPackwise(mlir::Operation *op);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ROWS_ROWACCESS_H
