//===- Iterations.cpp - loops by their number of iterations ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Language/Iterations.h"

#include "dialect/Mlafix.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/RegionUtils.h"

#include <limits>

using namespace mlir;
using namespace mlafix;

namespace {
/// Builds and folds arithmetic in the type of a loop's bounds.
class BoundBuilder {
public:
  BoundBuilder(OpBuilder &b, Location loc, Type type)
      : b(b), loc(loc), type(type) {}

  Value constant(int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
  }
  template <typename OpTy> Value op(Value x, Value y) {
    return b.createOrFold<OpTy>(loc, x, y);
  }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return b.createOrFold<arith::CmpIOp>(loc, predicate, x, y);
  }
  Value select(Value p, Value x, Value y) {
    return b.createOrFold<arith::SelectOp>(loc, p, x, y);
  }

private:
  OpBuilder &b;
  Location loc;
  Type type;
};
} // namespace

/// Builds the trip count of `loop`, as an index.
static Value buildCount(OpBuilder &b, scf::ForOp loop) {
  using P = arith::CmpIPredicate;
  Location loc = loop.getLoc();
  Type type = loop.getLowerBound().getType(), index = b.getIndexType();
  BoundBuilder x(b, loc, type), wide(b, loc, index);
  Value lower = loop.getLowerBound(), upper = loop.getUpperBound();
  Value one = x.constant(1);
  Value isForward = x.compare(P::sgt, loop.getStep(), x.constant(0));
  Value step = x.select(isForward, loop.getStep(), one);
  Value hasOne =
      x.compare(loop.getUnsignedCmp() ? P::ult : P::slt, lower, upper);
  hasOne = b.createOrFold<arith::AndIOp>(loc, hasOne, isForward);
  // The distance between the bounds, less 1. As an unsigned number it fits the
  // type for all bounds.
  Value distance = x.op<arith::SubIOp>(x.op<arith::SubIOp>(upper, lower), one);
  Value further = x.op<arith::DivUIOp>(distance, step);
  Value most = wide.constant(std::numeric_limits<int64_t>::max() - 1);
  if (type.isIndex())
    further = wide.op<arith::MinUIOp>(further, most);
  else
    further = b.createOrFold<arith::IndexCastUIOp>(loc, index, further);
  if (type.isInteger(64))
    further = wide.op<arith::MinUIOp>(further, most);
  Value count = wide.op<arith::AddIOp>(further, wide.constant(1));
  return wide.select(hasOne, count, wide.constant(0));
}

scf::ForOp mlafix::countIterations(scf::ForOp loop) {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  Type type = loop.getInductionVar().getType(), index = b.getIndexType();
  Value count = buildCount(b, loop);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0),
        one = arith::ConstantIndexOp::create(b, loc, 1);
  auto counted =
      scf::ForOp::create(b, loc, zero, count, one, loop.getInitArgs(),
                         [](OpBuilder &, Location, Value, ValueRange) {});
  counted->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  counted.getRegion().takeBody(loop.getRegion());

  Block *body = counted.getBody();
  Value old = body->getArgument(0);
  Value number = body->insertArgument(0u, index, loc);
  b.setInsertionPointToStart(body);
  BoundBuilder x(b, loc, type);
  if (!type.isIndex())
    number = arith::IndexCastOp::create(b, loc, type, number);
  old.replaceAllUsesWith(x.op<arith::AddIOp>(
      loop.getLowerBound(), x.op<arith::MulIOp>(number, loop.getStep())));
  body->eraseArgument(1);
  loop.replaceAllUsesWith(counted.getResults());
  loop.erase();
  return counted;
}

bool mlafix::reducesRowPerIteration(scf::ForOp loop) {
  return !loop->getParentOfType<scf::ForOp>() &&
         llvm::all_of(loop.getBody()->getOperations(),
                      [](Operation &op) { return op.getNumRegions() == 0; }) &&
         llvm::any_of(loop.getOps<ReduceOp>(),
                      [](ReduceOp op) { return !op.getInLane(); });
}

bool mlafix::reducesRowsInFlight(scf::ForOp loop) {
  return reducesRowPerIteration(loop) && !loop.getStaticTripCount();
}

llvm::SetVector<Value> mlafix::getKeptValues(Operation *loop) {
  llvm::SetVector<Value> kept;
  getUsedValuesDefinedAbove(loop->getRegions(), kept);
  kept.insert_range(loop->getRegion(0).getArguments());
  return kept;
}
