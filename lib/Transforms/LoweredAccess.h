//===- LoweredAccess.h - what an op moves in memory -------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LOWEREDACCESS_H
#define MLAFIX_TRANSFORMS_LOWEREDACCESS_H

#include "dialect/Mlafix.h"

#include <optional>

namespace mlafix {

/// A load, store, prefetch or atomic operation on an element or pack, in a form
/// common to all ops.
struct LoweredAccess {
  mlir::Value memref;
  mlir::ValueRange indices;
  mlir::Type type;           ///< type of the value
  unsigned alignment;        ///< in bytes
  mlir::Value stored = {};   ///< stores only
  mlir::Value mask = {};     ///< masked loads only
  mlir::Value passThru = {}; ///< result where masked off
  /// true if the op declares that caches need not keep it
  bool isStreamed = false;

  mlir::MemRefType getMemRefType() const {
    return llvm::cast<mlir::MemRefType>(memref.getType());
  }
};

/// Nullopt if the op is no access.
std::optional<LoweredAccess> getAccess(mlir::Operation *op);

/// True for packs of several f32.
bool isPackOfF32(mlir::Type type);

/// The kernel arguments whose address `op` needs, but not their elements. Empty
/// unless `op` is mlafix.present or mlafix.same_tensor.
llvm::SmallVector<mlir::BlockArgument> getAddressed(mlir::Operation *op);

/// Strides in elements; dynamic ones are ShapedType::kDynamic. A launch checks
/// that the columns of a tiled tensor are packed, so their strides are known as
/// far as the sizes are.
llvm::SmallVector<int64_t> getStrides(mlir::Value memref);

/// The number of elements of the dims from `first` on; kDynamic if a size is
/// dynamic or the product overflows 64 bits.
int64_t countColumns(mlir::Value memref, unsigned first);

/// True if `value` is computed from what was loaded.
bool comesFromMemory(mlir::Value value);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LOWEREDACCESS_H
