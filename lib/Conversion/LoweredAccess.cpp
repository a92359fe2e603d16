//===- LoweredAccess.cpp - what an op moves in memory ---------------------===//
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
  auto access = [](Value memref, ValueRange indices, Type type,
                   std::optional<uint64_t> alignment = std::nullopt) {
    Type element = cast<MemRefType>(memref.getType()).getElementType();
    return LoweredAccess{
        memref, indices, type,
        static_cast<unsigned>(alignment.value_or(getDTypeBytes(element)))};
  };
  std::optional<LoweredAccess> found;
  if (auto load = dyn_cast<memref::LoadOp>(op)) {
    found = access(load.getMemRef(), load.getIndices(), load.getType());
  } else if (auto store = dyn_cast<memref::StoreOp>(op)) {
    found = access(store.getMemRef(), store.getIndices(),
                   store.getValue().getType());
    found->stored = store.getValue();
  } else if (auto load = dyn_cast<vector::LoadOp>(op)) {
    found = access(load.getBase(), load.getIndices(), load.getType(),
                   load.getAlignment());
  } else if (auto store = dyn_cast<vector::StoreOp>(op)) {
    found = access(store.getBase(), store.getIndices(),
                   store.getValueToStore().getType(), store.getAlignment());
    found->stored = store.getValueToStore();
    found->isStreamed = store.getNontemporal();
  } else if (auto load = dyn_cast<vector::MaskedLoadOp>(op)) {
    found = access(load.getBase(), load.getIndices(), load.getType(),
                   load.getAlignment());
    found->mask = load.getMask();
    found->passThru = load.getPassThru();
  } else if (auto prefetch = dyn_cast<memref::PrefetchOp>(op)) {
    found = access(prefetch.getMemref(), prefetch.getIndices(),
                   prefetch.getMemRefType().getElementType());
  }
  return found;
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
