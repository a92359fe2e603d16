//===- IndexBuilder.cpp - index arithmetic at one location ----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/IndexBuilder.h"

using namespace mlir;
using namespace mlafix;

SmallVector<Value> IndexBuilder::delinearize(Value linear,
                                             ArrayRef<Value> extents) {
  SmallVector<Value> indices(extents.size());
  for (size_t i = extents.size(); i-- > 1;) {
    indices[i] = rem(linear, extents[i]);
    linear = div(linear, extents[i]);
  }
  if (!extents.empty())
    indices[0] = linear;
  return indices;
}
