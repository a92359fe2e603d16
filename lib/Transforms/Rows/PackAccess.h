//===- PackAccess.h - loads and stores of one pack --------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_ROWS_PACKACCESS_H
#define MLAFIX_TRANSFORMS_ROWS_PACKACCESS_H

#include "lib/Transforms/Rows/RowAccess.h"

namespace mlafix {

/// Returns the position of a pack in `memref`, or in the row if `memref` is
/// null. If `memref` is a stack buffer, the position counts only this lane's
/// packs, since the buffer contains no others.
using PackPositionFn = llvm::function_ref<PackPosition(mlir::Value memref)>;

/// Returns the indices in memory of element `start` of the row that `access`
/// reads or writes. If `start` is null, `access` is to a single element, and
/// the indices are those of this element. The row must not be a member of a
/// product.
llvm::SmallVector<mlir::Value> buildIndices(mlir::OpBuilder &b,
                                            mlir::Location loc,
                                            const MemoryAccess &access,
                                            mlir::Value start);

/// Applies `op`, for which isPackwise() holds, to one pack of a row. `operands`
/// holds one value per operand of `op`: a pack in place of a row. Returns null
/// if `op` has no result. Masked-off elements of a load read as zero, or as the
/// `else` value of the load.
mlir::Value doToPack(mlir::OpBuilder &b, const RowLayout &layout,
                     mlir::Operation *op, mlir::ValueRange operands,
                     PackPositionFn positionIn);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ROWS_PACKACCESS_H
