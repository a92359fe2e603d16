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

/// The position of a pack in `memref` (null: in the row). A lane's own buffer
/// contains only its own packs.
using PackPositionFn = llvm::function_ref<PackPosition(mlir::Value memref)>;

/// The indices in memory of a single element (null `start`), or of the element
/// at `start` of a row that is not a member.
llvm::SmallVector<mlir::Value> buildIndices(mlir::OpBuilder &b,
                                            mlir::Location loc,
                                            const MemoryAccess &access,
                                            mlir::Value start);

/// Loads the pack at `positionIn`. Masked-off elements read as zero, or as the
/// `else` value.
mlir::Value loadPack(mlir::OpBuilder &b, const RowLayout &layout, LoadOp load,
                     PackPositionFn positionIn);
void storePack(mlir::OpBuilder &b, const RowLayout &layout, StoreOp store,
               mlir::Value pack, PackPositionFn positionIn);
/// `packs`: one per member.
void storeMembers(mlir::OpBuilder &b, const RowLayout &layout,
                  StoreMembersOp store, mlir::ValueRange packs,
                  PackPositionFn positionIn);

/// Applies `op`, for which isPackwise() holds, to one pack of a row. `operands`
/// are the op's, with packs for rows. Returns null if the op has no result.
/// Masked-off elements read as zero, or as the `else` value.
mlir::Value doToPack(mlir::OpBuilder &b, const RowLayout &layout,
                     mlir::Operation *op, mlir::ValueRange operands,
                     PackPositionFn positionIn);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ROWS_PACKACCESS_H
