//===- Numbers.cpp - scalars as 64-bit numbers ----------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Numbers.h"

using namespace mlir;
using namespace mlafix;

std::optional<int64_t> mlafix::numberOf(Attribute attribute) {
  auto real = dyn_cast_if_present<FloatAttr>(attribute);
  if (real && real.getType().isF32())
    return real.getValue().bitcastToAPInt().getZExtValue();
  auto number = dyn_cast_if_present<IntegerAttr>(attribute);
  if (!number || number.getValue().getBitWidth() > 64)
    return std::nullopt;
  return number.getType().isInteger(1)
             ? int64_t(number.getValue().getZExtValue())
             : number.getValue().getSExtValue();
}

Attribute mlafix::attributeOf(Type type, int64_t number) {
  if (type.isF32())
    return FloatAttr::get(
        type, APFloat(APFloat::IEEEsingle(), APInt(32, uint32_t(number))));
  if (type.isInteger(1))
    return BoolAttr::get(type.getContext(), number);
  return IntegerAttr::get(type, number);
}
