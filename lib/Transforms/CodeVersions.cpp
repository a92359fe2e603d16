//===- CodeVersions.cpp - kernels that rely on guards ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/CodeVersions.h"
#include "dialect/Guards.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/MapVector.h"

#include <map>

using namespace mlir;
using namespace mlafix;

/// The type of a tensor whose rows follow each other without gaps, where its
/// sizes say how far apart they then are: outside of a dim of unknown size,
/// they do not, nor are the tensors of a list (`isMany`) any one distance
/// apart. Null if `type` says all of it already.
static MemRefType getDenseType(MemRefType type, bool isMany) {
  SmallVector<int64_t> strides = type.getStridesAndOffset().first;
  int64_t stride = 1;
  for (int64_t dim = type.getRank() - 1; dim >= isMany; --dim) {
    strides[dim] = stride;
    if (type.isDynamicDim(dim))
      break;
    stride *= type.getDimSize(dim);
    if (dim + 1 == type.getRank() && sharesByte(type.getElementType()))
      stride /= 2; // in bytes, from here on
  }
  auto dense = MemRefType::get(
      type.getShape(), type.getElementType(),
      StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides),
      type.getMemorySpace());
  return dense == type ? MemRefType() : dense;
}

/// Folds the branches and predicates that `version`'s guards decide.
static void foldBranches(KernelOp version) {
  RewritePatternSet patterns(version.getContext());
  scf::IfOp::getCanonicalizationPatterns(patterns, version.getContext());
  LoadOp::getCanonicalizationPatterns(patterns, version.getContext());
  (void)applyPatternsGreedily(version, std::move(patterns));
}

void mlafix::makeDistinct(KernelOp version, ArrayAttr aliases) {
  SmallVector<Attribute> guards(version.getGuardsAttr().getValue());
  for (auto pair : aliases.getAsRange<ArrayAttr>())
    guards.push_back(GuardAttr::get(version.getContext(), GuardKind::Distinct,
                                    {cast<IntegerAttr>(pair[0]).getInt(),
                                     cast<IntegerAttr>(pair[1]).getInt()}));
  version.setGuardsAttr(ArrayAttr::get(version.getContext(), guards));
  version.walk([&](SameTensorOp same) {
    if (!areGuardedDistinct(version.getGuardsAttr(),
                            getKernelArgument(same.getLhs()).getArgNumber(),
                            getKernelArgument(same.getRhs()).getArgNumber()))
      return;
    OpBuilder builder(same);
    same.replaceAllUsesWith(
        arith::ConstantIntOp::create(builder, same.getLoc(), false, 1)
            .getResult());
  });
  if (!aliases.empty())
    foldBranches(version);
}

void mlafix::makeDense(KernelOp version, const RowShape &shape) {
  SmallVector<Attribute> guards(version.getGuardsAttr().getValue());
  SmallVector<Type> types(version.getArgumentTypes());
  for (auto [index, bits] : shape.elementBits) {
    auto type = cast<MemRefType>(types[index]);
    MemRefType dense = getDenseType(type, version.isArgMany(index));
    if (!dense)
      continue;
    SmallVector<int64_t> given = type.getStridesAndOffset().first,
                         wanted = dense.getStridesAndOffset().first;
    for (auto [dim, stride] : llvm::enumerate(given))
      if (stride != wanted[dim])
        guards.push_back(GuardAttr::get(version.getContext(), GuardKind::Stride,
                                        /*args=*/{static_cast<int64_t>(index)},
                                        dim, wanted[dim]));
    types[index] = dense;
    version.getArgument(index).setType(dense);
  }
  version.setGuardsAttr(ArrayAttr::get(version.getContext(), guards));
  version.setType(FunctionType::get(version.getContext(), types, {}));
}

void mlafix::makeIdenticalStrides(KernelOp version, const RowShape &shape) {
  llvm::MapVector<Attribute, SmallVector<int64_t>> groups;
  for (unsigned i = 0; i < version.getNumArguments(); ++i) {
    auto type = dyn_cast<MemRefType>(version.getArgumentTypes()[i]);
    if (!type || version.isArgAbsent(i) || shape.elementBits.count(i) ||
        llvm::none_of(type.getStridesAndOffset().first, ShapedType::isDynamic))
      continue;
    // Dims without a name are independent, so such tensors are not compared.
    auto dims = version.getArgAttrOfType<ArrayAttr>(i, kDimsAttr);
    if (dims &&
        llvm::none_of(dims.getAsRange<StringAttr>(),
                      [](StringAttr dim) { return dim.getValue().empty(); }))
      groups[dims].push_back(i);
  }
  SmallVector<Attribute> guards(version.getGuardsAttr().getValue());
  for (auto &[dims, group] : groups) {
    // An optional tensor may have no strides.
    std::stable_partition(group.begin(), group.end(),
                          [&](int64_t i) { return !version.isArgOptional(i); });
    if (group.size() > 1 && !version.isArgOptional(group.front()))
      guards.push_back(
          GuardAttr::get(version.getContext(), GuardKind::SameStrides, group));
  }
  version.setGuardsAttr(ArrayAttr::get(version.getContext(), guards));
}

KernelOp mlafix::cloneCodeVersion(KernelOp kernel, StringRef suffix,
                                  LayoutAttr layout,
                                  ArrayRef<Attribute> guards) {
  OpBuilder b(kernel);
  auto clone = cast<KernelOp>(b.clone(*kernel));
  clone.setSymName((kernel.getSymName() + "_" + suffix).str());
  clone.setLayoutAttr(layout);
  clone.setGuardsAttr(b.getArrayAttr(guards));
  return clone;
}

SmallVector<Attribute> mlafix::getGuards(MLIRContext *context,
                                         const RowShape &shape,
                                         LayoutAttr layout) {
  SmallVector<Attribute> guards;
  std::map<int64_t, SmallVector<int64_t>> byAlignment;
  for (auto [index, bits] : shape.elementBits)
    if (int64_t pack = layout.packFor(shape.argDims.at(index));
        pack > 1 && pack * bits > 8)
      byAlignment[pack * bits / 8].push_back(index);
  for (auto &[bytes, args] : byAlignment)
    guards.push_back(GuardAttr::get(context, GuardKind::Align, args, bytes));
  if (!shape.isRagged)
    guards.push_back(GuardAttr::get(context, GuardKind::MaxRows, {},
                                    INT32_MAX / layout.getLanes()));
  return guards;
}
