//===- Geometry.cpp - what a launch has to know of a kernel ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Geometry.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlafix;

/// The verifier has made sure that it is one.
ExtentAttr mlafix::describeExtent(Value extent) {
  MLIRContext *context = extent.getContext();
  APInt value;
  if (matchPattern(extent, m_ConstantInt(&value)))
    return ExtentAttr::ofConstant(context, value.getSExtValue());
  if (auto dim = extent.getDefiningOp<memref::DimOp>())
    return ExtentAttr::get(context,
                           getKernelArgument(dim.getSource()).getArgNumber(),
                           *dim.getConstantIndex());
  if (auto cast = extent.getDefiningOp<arith::IndexCastOp>())
    extent = cast.getIn();
  return ExtentAttr::ofScalar(context,
                              getKernelArgument(extent).getArgNumber());
}

SmallVector<ExtentAttr> mlafix::describeExtents(ValueRange extents) {
  return llvm::map_to_vector(extents, describeExtent);
}

Value mlafix::addArgument(KernelOp kernel, StringRef name, Type type) {
  SmallVector<Attribute> names(kernel.getArgNames().getValue());
  unsigned position = kernel.getNumArguments();
  (void)kernel.insertArgument(position, type, {}, kernel.getLoc());
  names.push_back(StringAttr::get(kernel.getContext(), name));
  kernel.setArgNamesAttr(ArrayAttr::get(kernel.getContext(), names));
  return kernel.getArgument(position);
}
