//===- LoweredAccess.cpp - the memory access of an op ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/LoweredAccess.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

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
    found->isStreamed = load.getNontemporal();
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
  } else if (auto atomic = dyn_cast<memref::AtomicRMWOp>(op)) {
    found = access(atomic.getMemref(), atomic.getIndices(), atomic.getType());
  }
  return found;
}

bool mlafix::isPackOfF32(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getElementType().isF32() &&
         vector.getNumElements() > 1;
}

SmallVector<BlockArgument> mlafix::getAddressed(Operation *op) {
  if (auto present = dyn_cast<PresentOp>(op))
    return {getKernelArgument(present.getSource())};
  if (auto same = dyn_cast<SameTensorOp>(op))
    return {getKernelArgument(same.getLhs()), getKernelArgument(same.getRhs())};
  return {};
}

int64_t mlafix::countColumns(Value memref, unsigned first) {
  int64_t columns = 1;
  for (int64_t size :
       cast<MemRefType>(memref.getType()).getShape().drop_front(first))
    if (ShapedType::isDynamic(size) ||
        llvm::MulOverflow(columns, size, columns))
      return ShapedType::kDynamic;
  return columns;
}

SmallVector<int64_t> mlafix::getStrides(Value memref) {
  // The verifier guarantees that the memref has strides.
  SmallVector<int64_t> strides =
      cast<MemRefType>(memref.getType()).getStridesAndOffset().first;
  for (unsigned dim = 1; isSwizzled(memref) && dim < strides.size(); ++dim)
    if (int64_t columns = countColumns(memref, dim + 1);
        !ShapedType::isDynamic(columns))
      strides[dim] = columns;
  return strides;
}

bool mlafix::comesFromMemory(Value value) {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.inclusive = true;
  return failed(getBackwardSlice(value, &slice, options)) ||
         llvm::any_of(slice,
                      [](Operation *op) { return anyOp(op, getAccess); });
}
