//===- OnlyChunk.cpp - code for groups with one chunk ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GPU/OnlyChunk.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlafix;

Value mlafix::buildHasOnlyChunk(OpBuilder &b, scf::ForOp loop) {
  Location loc = loop.getLoc();
  Value lower = loop.getLowerBound(), upper = loop.getUpperBound();
  Value any =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, lower, upper);
  Value second = arith::AddIOp::create(b, loc, lower, loop.getStep());
  Value one =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, upper, second);
  return arith::AndIOp::create(b, loc, any, one);
}

/// True if `value` is the number of a chunk's first iteration.
static bool isChunk(scf::ForOp loop, Value value) {
  auto sum = value.getDefiningOp<arith::AddIOp>();
  return sum && llvm::is_contained(sum->getOperands(), loop.getInductionVar());
}

bool mlafix::areAlikeOfChunk(scf::ForOp loopOfX, Value x, scf::ForOp loopOfY,
                             Value y) {
  if (x == y || (isChunk(loopOfX, x) && isChunk(loopOfY, y)))
    return true;
  Operation *a = x.getDefiningOp(), *b = y.getDefiningOp();
  return a && b && loopOfX->isProperAncestor(a) &&
         loopOfY->isProperAncestor(b) && a->getName() == b->getName() &&
         a->getAttrDictionary() == b->getAttrDictionary() &&
         a->getPropertiesAsAttribute() == b->getPropertiesAsAttribute() &&
         !a->getNumRegions() &&
         llvm::equal(a->getResultTypes(), b->getResultTypes()) &&
         cast<OpResult>(x).getResultNumber() ==
             cast<OpResult>(y).getResultNumber() &&
         a->getNumOperands() == b->getNumOperands() &&
         llvm::all_of_zip(a->getOperands(), b->getOperands(),
                          [&](Value p, Value q) {
                            return areAlikeOfChunk(loopOfX, p, loopOfY, q);
                          });
}

/// Clones the only iteration of `loop`, but for what `mapping` has, and maps
/// its results.
static void cloneOnlyIteration(OpBuilder &b, scf::ForOp loop,
                               IRMapping &mapping) {
  mapping.map(loop.getInductionVar(), loop.getLowerBound());
  for (auto [argument, init] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs()))
    mapping.map(argument, mapping.lookupOrDefault(init));
  for (Operation &op : loop.getBody()->without_terminator())
    if (llvm::none_of(op.getResults(),
                      [&](Value result) { return mapping.contains(result); }))
      b.clone(op, mapping);
  for (auto [result, value] :
       llvm::zip_equal(loop.getResults(), loop.getYieldedValues()))
    mapping.map(result, mapping.lookupOrDefault(value));
}

void mlafix::separateOnlyChunk(ArrayRef<Operation *> before, scf::ForOp loop,
                               Value hasOnlyChunk, Value isShared,
                               const IRMapping &known) {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  SmallVector<Operation *> ops(before);
  ops.push_back(loop);
  auto isAround = [&](Operation *user) {
    return llvm::any_of(ops,
                        [&](Operation *op) { return op->isAncestor(user); });
  };
  llvm::SetVector<Value> results;
  for (Operation *op : ops) {
    // Shared memory is the same for all branches.
    op->walk([&](memref::AllocaOp buffer) { buffer->moveBefore(ops.front()); });
    for (Value result : op->getResults())
      if (!llvm::all_of(result.getUsers(), isAround))
        results.insert(result);
  }
  SmallVector<Value> values(results.begin(), results.end());
  TypeRange types = ValueRange(values).getTypes();
  auto branch =
      scf::IfOp::create(b, loc, types, hasOnlyChunk, /*withElseRegion=*/true);
  for (auto [value, result] : llvm::zip_equal(values, branch.getResults()))
    value.replaceUsesWithIf(
        result, [&](OpOperand &use) { return !isAround(use.getOwner()); });

  // A branch without results comes with terminators.
  auto begin = [&](Block *block) {
    block->clear();
    b.setInsertionPointToStart(block);
  };
  begin(branch.thenBlock());
  auto shared =
      scf::IfOp::create(b, loc, types, isShared, /*withElseRegion=*/true);
  scf::YieldOp::create(b, loc, shared.getResults());
  for (Block *block : {shared.thenBlock(), shared.elseBlock()}) {
    begin(block);
    IRMapping mapping(known);
    for (Operation *op : ops) {
      if (auto nested = dyn_cast<scf::ForOp>(op))
        cloneOnlyIteration(b, nested, mapping);
      else
        b.clone(*op, mapping);
    }
    SmallVector<Value> copies = llvm::map_to_vector(
        values, [&](Value value) { return mapping.lookupOrDefault(value); });
    scf::YieldOp::create(b, loc, copies);
    // What is loaded of a next chunk, too.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }
  begin(branch.elseBlock());
  auto yield = scf::YieldOp::create(b, loc, values);
  for (Operation *op : ops)
    op->moveBefore(yield);
}
