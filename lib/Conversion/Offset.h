//===- Offset.h - where an element lies ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_CONVERSION_OFFSET_H
#define MLAFIX_CONVERSION_OFFSET_H

#include "mlir/IR/Builders.h"

namespace mlafix {

/// The sum of the products of indices and strides, in elements, i64; null for
/// no index. Asks `dynamicStride` for the strides that `strides` does not tell.
///
/// Constant strides that divide each other are factored out, (i * 128 + j) * 64
/// rather than i * 8192 + j * 64: where i and j were made of the number of a
/// row, that number is what is in the brackets.
mlir::Value
buildOffset(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange indices,
            llvm::ArrayRef<int64_t> strides,
            llvm::function_ref<mlir::Value(unsigned dim)> dynamicStride);

/// The element at `row` and `column`, i64, of rows `pitch` apart that lie in
/// tiles of 128 x 4 (mlafix.swizzle), i64: a tile has 512 elements, and in it
/// rows 32 apart are next to each other. `columns` is how many there are, or
/// kDynamic: what few columns add is computed in 32 bits.
mlir::Value buildTiledOffset(mlir::OpBuilder &b, mlir::Location loc,
                             mlir::Value row, mlir::Value column,
                             int64_t columns, mlir::Value pitch);

} // namespace mlafix

#endif // MLAFIX_CONVERSION_OFFSET_H
