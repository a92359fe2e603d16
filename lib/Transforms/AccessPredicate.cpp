//===- AccessPredicate.cpp - conditions of accesses -----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/AccessPredicate.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlafix;

Value mlafix::buildPresent(OpBuilder &b, Location loc, Value memref) {
  BlockArgument argument = getKernelArgument(memref);
  if (!argument ||
      !getKernelOf(argument).isArgOptional(argument.getArgNumber()))
    return {};
  return PresentOp::create(b, loc, memref);
}

Value mlafix::both(OpBuilder &b, Location loc, Value p, Value q) {
  if (!p || !q)
    return p ? p : q;
  return arith::AndIOp::create(b, loc, p, q);
}

Value mlafix::accessPredicate(OpBuilder &b, Location loc, Value predicate,
                              Value memref) {
  return both(b, loc, buildPresent(b, loc, memref), predicate);
}

std::pair<BlockArgument, int64_t> mlafix::findSizeOf(KernelOp kernel,
                                                     DimAttr dim) {
  for (BlockArgument argument : kernel.getBody().front().getArguments()) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    if (!type || kernel.isArgOptional(argument.getArgNumber()))
      continue;
    for (unsigned position = 0; position < type.getRank(); ++position)
      if (DimAttr other = getArgumentDim(argument, position);
          other && other.isBounded() && other.getName() == dim.getName())
        return {argument, position};
  }
  llvm_unreachable("the kernel's verifier asks for such a tensor");
}

Value mlafix::buildRowSize(OpBuilder &b, Location loc, KernelOp kernel,
                           DimAttr dim) {
  auto [argument, position] = findSizeOf(kernel, dim);
  Value at = arith::ConstantIndexOp::create(b, loc, position);
  return memref::DimOp::create(b, loc, argument, at);
}

Value mlafix::statePredicate(OpBuilder &b, LoadStateOp load) {
  Location loc = load.getLoc();
  return accessPredicate(
      b, loc, accessPredicate(b, loc, load.getPredicate(), load.getOut()),
      load.getLse());
}

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
