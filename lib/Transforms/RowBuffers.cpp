//===- RowBuffers.cpp - what a thread keeps of rows on its stack ----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/RowBuffers.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlafix;

Value mlafix::allocBuffer(KernelOp kernel, Type element, int64_t count) {
  OpBuilder b = OpBuilder::atBlockBegin(&kernel.getBody().front());
  return memref::AllocaOp::create(b, kernel.getLoc(),
                                  MemRefType::get({count}, element));
}

Value mlafix::allocRow(KernelOp kernel, Type tile) {
  LayoutAttr layout = kernel.getLayoutAttr();
  DimAttr dim = getTileDim(tile);
  return allocBuffer(kernel, getElementTypeOrSelf(tile),
                     layout.packsFor(dim) * layout.packFor(dim));
}
