//===- RaggedStores.h - stores in the body of a ragged grid -----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GRID_RAGGEDSTORES_H
#define MLAFIX_TRANSFORMS_GRID_RAGGEDSTORES_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// The stores of scalars in a grid's body that depend only on the grid's
/// indices, not on memory.
struct IndexStores {
  llvm::SmallVector<StoreOp> stores;
  /// The stores and the ops of the body that they need, in the order of the
  /// body.
  llvm::SmallVector<mlir::Operation *> ops;
};

/// Returns the stores of scalars in a grid's body that depend only on indices.
/// Returns none if the body reads memory, or if it stores a row to a tensor
/// that also gets scalars.
IndexStores findIndexStores(mlir::Block &body);

/// Returns true if a grid's body has no effects except the stores of `scalars`.
bool storesScalarsAlone(mlir::Block &body, const IndexStores &scalars);

/// Returns true if no op in a grid's body reads memory.
bool onlyStores(mlir::Block &body);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GRID_RAGGEDSTORES_H
