//===- KnownNumbers.cpp - what is known of sizes and integers -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/KnownNumbers.h"

#include <limits>

using namespace mlir;
using namespace mlafix;

/// Returns the size of dim `dim` if the argument's type fixes it, else nullopt.
static std::optional<KnownNumber> getFixed(MemRefType type, unsigned dim) {
  if (type.isDynamicDim(dim))
    return std::nullopt;
  int64_t size = type.getDimSize(dim);
  return KnownNumber{Decider::Type, size, size};
}

/// Returns what is known about the size of the dim `name` if no argument's type
/// fixes the size. If a specialised kernel, which has bindings, still has an
/// upper-case name, the name was bound to "any".
static KnownNumber getOpen(KernelOp kernel, StringRef name) {
  if (!isConstantName(name))
    return {Decider::Launch, 0, kernel.getMostOf(name)};
  if (kernel.getBindings())
    return {Decider::LaunchOfOpenName};
  return {Decider::Specialization, 1};
}

KnownNumber mlafix::getKnownSize(KernelOp kernel, StringRef dim) {
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    auto type = dyn_cast<MemRefType>(kernel.getArgumentTypes()[i]);
    for (int64_t at = 0; type && at < type.getRank(); ++at)
      if (cast<StringAttr>(kernel.getArgDims(i)[at]).getValue() == dim)
        if (std::optional<KnownNumber> fixed = getFixed(type, at))
          return *fixed;
  }
  std::optional<Factors> factors = Factors::of(dim);
  if (!factors)
    return getOpen(kernel, dim);
  DimAttr product = factors->getDim(kernel);
  KnownNumber result = {Decider::Specialization, 1};
  for (StringRef name : product.getNames())
    if (KnownNumber factor = getOpen(kernel, name); factor.isOfLaunch())
      result = {Decider::Launch};
  return result;
}

KnownNumber mlafix::getKnownSize(KernelOp kernel, unsigned argument,
                                 unsigned dim) {
  auto type = cast<MemRefType>(kernel.getArgumentTypes()[argument]);
  if (std::optional<KnownNumber> fixed = getFixed(type, dim))
    return *fixed;
  StringRef name =
      cast<StringAttr>(kernel.getArgDims(argument)[dim]).getValue();
  return name.empty() ? KnownNumber{Decider::Launch}
                      : getKnownSize(kernel, name);
}

KnownNumber mlafix::getKnownScalar(KernelOp kernel, unsigned argument) {
  KnownNumber result = {Decider::Launch, std::numeric_limits<int64_t>::min()};
  auto bound = kernel.getArgAttrOfType<StringAttr>(argument, kAtMostAttr);
  if (!bound)
    return result;
  result.least = 0;
  KnownNumber size = getKnownSize(kernel, bound.getValue());
  if (size.decider == Decider::Type)
    result.most = size.most;
  else
    result.atMost = bound.getValue();
  return result;
}
