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

/// Where a pack of a row is in `memref` (null: in the row). A lane's own buffer
/// holds its packs alone.
using PackPositionFn = llvm::function_ref<PackPosition(mlir::Value memref)>;

/// The indices of an element in memory: of an access of one (null `start`), or
/// of the one at `start` in a row that is no member.
llvm::SmallVector<mlir::Value> buildIndices(mlir::OpBuilder &b,
                                            mlir::Location loc,
                                            const MemoryAccess &access,
                                            mlir::Value start);

/// The pack at `positionIn`; what is not to be read is zero, or the `else`
/// value.
mlir::Value loadPack(mlir::OpBuilder &b, const RowLayout &layout, LoadOp load,
                     PackPositionFn positionIn);
void storePack(mlir::OpBuilder &b, const RowLayout &layout, StoreOp store,
               mlir::Value pack, PackPositionFn positionIn);
/// `packs`: one of each member.
void storeMembers(mlir::OpBuilder &b, const RowLayout &layout,
                  StoreMembersOp store, mlir::ValueRange packs,
                  PackPositionFn positionIn);

/// Does `op`, for which isPackwise() holds, to one pack of a row. `operands`
/// are the op's, with a pack for a row. Null where the op has no result. What
/// is not to be read is zero, or the `else` value.
mlir::Value doToPack(mlir::OpBuilder &b, const RowLayout &layout,
                     mlir::Operation *op, mlir::ValueRange operands,
                     PackPositionFn positionIn);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ROWS_PACKACCESS_H
