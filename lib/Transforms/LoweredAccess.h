//===- LoweredAccess.h - the memory access of an op -------------*- C++ -*-===//
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

/// A load, store, prefetch or atomic operation on an element or pack, described
/// in the same way for ops of the memref and vector dialects.
struct LoweredAccess {
  mlir::Value memref;
  mlir::ValueRange indices;
  mlir::Type type;         ///< type of the element or pack
  unsigned alignment;      ///< alignment of the access in bytes
  mlir::Value stored = {}; ///< stored value; null unless a store
  mlir::Value mask = {};   ///< mask; null unless a masked load
  /// Result for masked-off elements; null unless a masked load.
  mlir::Value passThru = {};
  /// True if the op declares that caches need not keep the data.
  bool isStreamed = false;
};

/// Returns the memory access of `op`, or nullopt if `op` does not access
/// memory.
std::optional<LoweredAccess> getAccess(mlir::Operation *op);

/// Returns true if `type` is a pack of several f32.
bool isPackOfF32(mlir::Type type);

/// Returns the kernel arguments of which `op` needs the address but no
/// elements. Returns none unless `op` is mlafix.present or mlafix.same_tensor.
llvm::SmallVector<mlir::BlockArgument> getAddressed(mlir::Operation *op);

/// Returns the strides of `memref` in elements. Dynamic strides are
/// ShapedType::kDynamic. In a tiled tensor, the stride of a dim other than the
/// first is static if the sizes of all later dims are static, because a launch
/// checks that the columns are packed.
llvm::SmallVector<int64_t> getStrides(mlir::Value memref);

/// Returns the number of elements of the dims from `first` on. Returns
/// ShapedType::kDynamic if a size is dynamic or the product overflows 64 bits.
int64_t countColumns(mlir::Value memref, unsigned first);

/// Returns true if `value` is computed from a loaded value.
bool comesFromMemory(mlir::Value value);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LOWEREDACCESS_H
