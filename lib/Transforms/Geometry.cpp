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

/// An extent as units spell it (docs/UnitFormat.md); the verifier has made sure
/// that it is one.
DictionaryAttr mlafix::describeExtent(Value extent) {
  Builder b(extent.getContext());
  auto number = [&](StringRef name, int64_t value) {
    return b.getNamedAttr(name, b.getI64IntegerAttr(value));
  };
  APInt value;
  if (matchPattern(extent, m_ConstantInt(&value)))
    return b.getDictionaryAttr({number("value", value.getSExtValue())});
  if (auto dim = extent.getDefiningOp<memref::DimOp>())
    return b.getDictionaryAttr(
        {number("arg", getKernelArgument(dim.getSource()).getArgNumber()),
         number("dim", *dim.getConstantIndex())});
  if (auto cast = extent.getDefiningOp<arith::IndexCastOp>())
    extent = cast.getIn();
  return b.getDictionaryAttr(
      {number("arg", getKernelArgument(extent).getArgNumber())});
}

Attribute mlafix::describeExtents(MLIRContext *context, ValueRange extents) {
  return Builder(context).getArrayAttr(
      llvm::map_to_vector(extents, [](Value extent) -> Attribute {
        return describeExtent(extent);
      }));
}

void mlafix::setGeometry(KernelOp kernel,
                         ArrayRef<std::pair<StringRef, Attribute>> fields) {
  Builder b(kernel.getContext());
  kernel.setGeometryAttr(
      b.getDictionaryAttr(llvm::map_to_vector(fields, [&](auto &field) {
        return b.getNamedAttr(field.first, field.second);
      })));
}

Value mlafix::addArgument(KernelOp kernel, StringRef name, Type type) {
  SmallVector<Attribute> names(kernel.getArgNames().getValue());
  unsigned position = kernel.getNumArguments();
  (void)kernel.insertArgument(position, type, {}, kernel.getLoc());
  names.push_back(StringAttr::get(kernel.getContext(), name));
  kernel.setArgNamesAttr(ArrayAttr::get(kernel.getContext(), names));
  return kernel.getArgument(position);
}
