//===- RowStrides.cpp - where the elements of rows lie --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Frontend/BuilderImpl.h"

using namespace mlir;
using namespace mlafix;
using Impl = KernelBuilder::Impl;

/// Has the elements of `tensor`'s last dim lie one behind another.
static void setUnitStride(mlir::Value tensor) {
  auto type = cast<MemRefType>(tensor.getType());
  auto layout = cast<StridedLayoutAttr>(type.getLayout());
  SmallVector<int64_t> strides(layout.getStrides());
  strides.back() = 1;
  tensor.setType(
      MemRefType::get(type.getShape(), type.getElementType(),
                      StridedLayoutAttr::get(tensor.getContext(),
                                             layout.getOffset(), strides)));
}

void Impl::useRows(Value tensor) {
  mlir::Value value = get(tensor);
  auto type = cast<MemRefType>(value.getType());
  if (type.getStridesAndOffset().first.back() == 1)
    return;
  DimAttr dim = getArgumentDim(value, type.getRank() - 1);
  if (getProductOf(KernelOp(kernel), dim)) {
    groupRows.insert(value);
    return;
  }
  setUnitStride(value);
  refreshSignature();
}

void Impl::settleGroupRows() {
  if (groupRows.empty())
    return;
  DenseSet<DimAttr> dims;
  kernel->walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (isRowTile(type))
        dims.insert(getTileDim(type));
  });
  for (mlir::Value tensor : groupRows) {
    int64_t rank = cast<MemRefType>(tensor.getType()).getRank();
    DimAttr dim = getArgumentDim(tensor, rank - 1);
    if (!dims.contains(getProductOf(KernelOp(kernel), dim)))
      setUnitStride(tensor);
  }
  refreshSignature();
}
