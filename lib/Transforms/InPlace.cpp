//===- InPlace.cpp - calls whose outputs are inputs -----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/InPlace.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlafix;

bool mlafix::isSameRow(StoreStateOp store, LoadStateOp load) {
  return store.getOut() &&
         llvm::equal(store.getOutIndices(), load.getOutIndices()) &&
         getElementTypeOrSelf(store.getOut()) ==
             getElementTypeOrSelf(load.getOut()) &&
         (!store.getLse() ||
          llvm::equal(store.getLseIndices(), load.getLseIndices()));
}

Value mlafix::buildSameTensor(OpBuilder &b, Location loc, Value x, Value y) {
  if (x == y)
    return arith::ConstantIntOp::create(b, loc, true, 1);
  return SameTensorOp::create(b, loc, x, y);
}
