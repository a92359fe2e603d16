//===- InPlace.cpp - calls whose outputs are inputs -----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/InPlace.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

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
  auto pointer = [&](Value memref) -> Value {
    return memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref);
  };
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, pointer(x),
                               pointer(y));
}
