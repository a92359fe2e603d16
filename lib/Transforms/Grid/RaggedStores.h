//===- RaggedStores.h - what rows of a ragged grid store --------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GRID_RAGGEDSTORES_H
#define MLAFIX_TRANSFORMS_GRID_RAGGEDSTORES_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// Stores of scalars that depend on a grid's indices and on nothing in memory.
struct IndexStores {
  llvm::SmallVector<StoreOp> stores;
  /// The stores, and the ops of the body that they need.
  llvm::SmallVector<mlir::Operation *> ops;
};

/// The stores of scalars in a grid's body that depend on indices alone. Empty
/// if anything in the body is read, or if a row is stored to the same tensor.
IndexStores findIndexStores(mlir::Block &body);

/// True if a grid's body has no effects except the stores of `scalars`.
bool storesScalarsAlone(mlir::Block &body, const IndexStores &scalars);

/// True if the operations of a grid's body read no memory.
bool onlyStores(mlir::Block &body);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GRID_RAGGEDSTORES_H
