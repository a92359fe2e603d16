//===- LoweredAccess.h - what an op moves in memory -------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_CONVERSION_LOWEREDACCESS_H
#define MLAFIX_CONVERSION_LOWEREDACCESS_H

#include "dialect/Mlafix.h"

#include <optional>

namespace mlafix {

/// Name of the unit attribute on a masked load of what the caches need not keep
/// (vector.load has one of its own).
inline constexpr llvm::StringLiteral kStreamedAttr = "mlafix.streamed";

/// A load, a store, a prefetch or an atomic operation of one element or one
/// pack, whatever op it is.
struct LoweredAccess {
  mlir::Value memref;
  mlir::ValueRange indices;
  mlir::Type type;           ///< of what is moved
  unsigned alignment;        ///< in bytes
  mlir::Value stored = {};   ///< of a store
  mlir::Value mask = {};     ///< of a masked load
  mlir::Value passThru = {}; ///< where its mask is false
  bool isStreamed = false;   ///< the caches need not keep it

  mlir::MemRefType getMemRefType() const {
    return llvm::cast<mlir::MemRefType>(memref.getType());
  }
};

/// None for an op that moves nothing.
std::optional<LoweredAccess> getAccess(mlir::Operation *op);

/// The arguments of which `op` needs the addresses and nothing else:
/// mlafix.present and mlafix.same_tensor; empty for other ops.
llvm::SmallVector<mlir::BlockArgument> getAddressed(mlir::Operation *op);

/// Strides in elements; dynamic ones are ShapedType::kDynamic. The columns of a
/// tensor in tiles follow each other, which a launch checks: their strides are
/// known as far as the sizes are.
llvm::SmallVector<int64_t> getStrides(mlir::Value memref);

/// The elements of the dims from `first` on, by their sizes; kDynamic where one
/// of these is not known, or their product has more than 64 bits.
int64_t countColumns(mlir::Value memref, unsigned first);

} // namespace mlafix

#endif // MLAFIX_CONVERSION_LOWEREDACCESS_H
