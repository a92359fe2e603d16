//===- OnlyChunk.cpp - code for groups with one chunk ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Merges/OnlyChunk.h"

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

/// Returns the number of the first iteration of a chunk in `loop`: the result
/// of the only addition to the induction variable. Returns null if there is no
/// such addition or more than one.
static Value getChunk(scf::ForOp loop) {
  Value chunk;
  for (Operation *user : loop.getInductionVar().getUsers()) {
    if (!isa<arith::AddIOp>(user))
      continue;
    if (chunk)
      return Value();
    chunk = user->getResult(0);
  }
  return chunk;
}

namespace {
/// Compares values of two loops that process the same chunk. Remembers the
/// pairs that have been compared.
class ChunkComparison {
public:
  ChunkComparison(scf::ForOp loopOfX, scf::ForOp loopOfY)
      : loopOfX(loopOfX), loopOfY(loopOfY), chunkOfX(getChunk(loopOfX)),
        chunkOfY(getChunk(loopOfY)) {}

  bool areAlike(Value x, Value y) {
    if (x == y || (chunkOfX && chunkOfY && x == chunkOfX && y == chunkOfY))
      return true;
    auto known = answers.find({x, y});
    if (known != answers.end())
      return known->second;
    bool alike = areComputedAlike(x, y);
    answers.insert({{x, y}, alike});
    return alike;
  }

private:
  bool areComputedAlike(Value x, Value y) {
    Operation *a = x.getDefiningOp(), *b = y.getDefiningOp();
    return a && b && loopOfX->isProperAncestor(a) &&
           loopOfY->isProperAncestor(b) &&
           cast<OpResult>(x).getResultNumber() ==
               cast<OpResult>(y).getResultNumber() &&
           OperationEquivalence::isEquivalentTo(
               a, b, [&](Value p, Value q) { return success(areAlike(p, q)); },
               /*markEquivalent=*/nullptr,
               OperationEquivalence::IgnoreLocations);
  }

  scf::ForOp loopOfX, loopOfY;
  Value chunkOfX, chunkOfY;
  llvm::DenseMap<std::pair<Value, Value>, bool> answers;
};
} // namespace

std::optional<SmallVector<size_t>> mlafix::findOfChunk(scf::ForOp loop,
                                                       ArrayRef<Value> values,
                                                       scf::ForOp other,
                                                       ArrayRef<Value> among) {
  ChunkComparison comparison(loop, other);
  SmallVector<size_t> numbers;
  for (Value value : values) {
    const Value *found = llvm::find_if(among, [&](Value candidate) {
      return comparison.areAlike(value, candidate);
    });
    if (found == among.end())
      return std::nullopt;
    numbers.push_back(found - among.begin());
  }
  return numbers;
}

/// Clones the only iteration of `loop` and maps the loop's results to their
/// values. Ops with results that `mapping` already maps are not cloned.
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

void mlafix::separateOnlyChunk(ArrayRef<Operation *> before, scf::ForOp largest,
                               scf::ForOp loop, Value hasOnlyChunk,
                               Value isShared, const IRMapping &known) {
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
    // All branches use the same buffers in shared memory, so the buffers move
    // in front of the branches.
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

  // A branch without results is created with terminators.
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
      if (op == largest || op == loop)
        cloneOnlyIteration(b, cast<scf::ForOp>(op), mapping);
      else
        b.clone(*op, mapping);
    }
    SmallVector<Value> copies = llvm::map_to_vector(
        values, [&](Value value) { return mapping.lookupOrDefault(value); });
    scf::YieldOp::create(b, loc, copies);
    // Erase unused ops, among them loads of a next chunk.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }
  begin(branch.elseBlock());
  auto yield = scf::YieldOp::create(b, loc, values);
  for (Operation *op : ops)
    op->moveBefore(yield);
}
