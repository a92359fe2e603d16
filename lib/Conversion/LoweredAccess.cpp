//===- LoweredAccess.cpp - what an op moves in memory
//----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LoweredAccess.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlafix;

std::optional<LoweredAccess> mlafix::getAccess(Operation *op) {
  auto natural = [](Value memref) {
    return static_cast<unsigned>(
        getDTypeBytes(cast<MemRefType>(memref.getType()).getElementType()));
  };
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return LoweredAccess{load.getMemRef(),
                         load.getIndices(),
                         Value(),
                         load.getType(),
                         natural(load.getMemRef()),
                         {},
                         {}};
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return LoweredAccess{store.getMemRef(),
                         store.getIndices(),
                         store.getValue(),
                         store.getValue().getType(),
                         natural(store.getMemRef()),
                         {},
                         {}};
  if (auto load = dyn_cast<vector::LoadOp>(op))
    return LoweredAccess{load.getBase(),
                         load.getIndices(),
                         Value(),
                         load.getType(),
                         static_cast<unsigned>(load.getAlignment().value_or(
                             natural(load.getBase()))),
                         {},
                         {}};
  if (auto store = dyn_cast<vector::StoreOp>(op))
    return LoweredAccess{store.getBase(),
                         store.getIndices(),
                         store.getValueToStore(),
                         store.getValueToStore().getType(),
                         static_cast<unsigned>(store.getAlignment().value_or(
                             natural(store.getBase()))),
                         {},
                         {},
                         store.getNontemporal()};
  if (auto load = dyn_cast<vector::MaskedLoadOp>(op))
    return LoweredAccess{load.getBase(),
                         load.getIndices(),
                         Value(),
                         load.getType(),
                         static_cast<unsigned>(load.getAlignment().value_or(
                             natural(load.getBase()))),
                         load.getMask(),
                         load.getPassThru()};
  if (auto prefetch = dyn_cast<memref::PrefetchOp>(op))
    return LoweredAccess{prefetch.getMemref(),
                         prefetch.getIndices(),
                         Value(),
                         prefetch.getMemRefType().getElementType(),
                         natural(prefetch.getMemref()),
                         {},
                         {}};
  return std::nullopt;
}

SmallVector<BlockArgument> mlafix::getAddressed(Operation *op) {
  if (auto present = dyn_cast<PresentOp>(op))
    return {getKernelArgument(present.getSource())};
  if (auto same = dyn_cast<SameTensorOp>(op))
    return {getKernelArgument(same.getLhs()), getKernelArgument(same.getRhs())};
  return {};
}

SmallVector<int64_t> mlafix::getStrides(MemRefType type) {
  // The kernel's verifier has seen to it that it has some.
  return type.getStridesAndOffset().first;
}
