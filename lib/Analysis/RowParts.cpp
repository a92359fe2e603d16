//===- RowParts.cpp - the elements of parts and slices of rows ------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Models the indices of elements within a row. If a kernel accesses parts of
// rows along a product (G K), an element has two indices in the row, one per
// factor: group and member. Both are linear, whether the sizes of G and K are
// known or not. If a kernel accesses a slice, the access has an index that runs
// over the elements of the slice.
//
//===----------------------------------------------------------------------===//

#include "dialect/KnownNumbers.h"
#include "lib/Analysis/RowModel.h"

using namespace mlir;
using namespace mlafix;

unsigned RowModel::getRank(unsigned argument) {
  auto type = cast<MemRefType>(kernel.getArgumentTypes()[argument]);
  DimAttr last = getLastDim(kernel.getArgument(argument));
  return type.getRank() + (last && parted.contains(last) ? 1 : 0);
}

Linear RowModel::getSize(unsigned argument, unsigned dim) {
  auto type = cast<MemRefType>(kernel.getArgumentTypes()[argument]);
  unsigned last = type.getRank() - 1;
  if (dim >= last && getRank(argument) > type.getRank()) {
    DimAttr product = getLastDim(kernel.getArgument(argument));
    DimAttr factor = dim == last ? product.getGroups() : product.getGroup();
    return factor.isBound() ? Linear::of(factor.getSize())
                            : Linear::of(getNamedSize(factor.getName()));
  }
  if (!type.isDynamicDim(dim))
    return Linear::of(type.getDimSize(dim));
  StringRef name =
      cast<StringAttr>(kernel.getArgDims(argument)[dim]).getValue();
  if (!name.empty())
    return Linear::of(getNamedSize(name));
  auto it = otherSizes.find({argument, dim});
  if (it != otherSizes.end())
    return Linear::of(it->second);
  Var var = addSize(kernel.getArgName(argument) + ".shape[" + Twine(dim) + "]",
                    /*least=*/0, kMaxSize);
  otherSizes[{argument, dim}] = var;
  return Linear::of(var);
}

Var RowModel::getGroupIndex(DimAttr product, unsigned argument) {
  auto it = groupIndices.find(product);
  if (it != groupIndices.end())
    return it->second;
  Var var = addIndex(Value(), getSize(argument, getRank(argument) - 2),
                     Variable::Loop, "group");
  variables[var].isOfAccess = true;
  return groupIndices[product] = var;
}

Var RowModel::getSliceIndex(RowSlice slice) {
  auto [it, isNew] = sliceIndices.try_emplace({slice.begin, slice.end}, Var());
  if (!isNew)
    return it->second;
  auto define = [&](Var var) {
    return isBelow(Linear::of(var, 1, -slice.begin),
                   Linear::of(slice.end - slice.begin));
  };
  Var var = addDerived(Value(), {slice.begin, slice.end - 1}, define,
                       Variable::Loop, "element");
  variables[var].isOfAccess = true;
  return sliceIndices[{slice.begin, slice.end}] = var;
}

Condition RowModel::hasSlice(const MemoryAccess &access) {
  unsigned argument = access.getArgNumber(), last = access.indices.size();
  if (!access.slice || !getKnownSize(kernel, argument, last).isOfLaunch())
    return Condition::always();
  return Condition::of(
      *add(getSize(argument, last), Linear::of(access.slice->end), -1));
}

void RowModel::addPart(RowAccess &row) {
  const MemoryAccess &access = row.access;
  if (access.slice) {
    Var var = getSliceIndex(*access.slice);
    row.loops.push_back(var);
    row.indices.push_back(Linear::of(var));
    return;
  }
  if (!access.isPart())
    return;
  if (access.group) {
    row.indices.push_back(getValue(access.group));
  } else {
    Var var = getGroupIndex(access.getProduct(), access.getArgNumber());
    row.loops.push_back(var);
    row.indices.push_back(Linear::of(var));
  }
  if (access.member)
    row.indices.push_back(getValue(access.member));
}
