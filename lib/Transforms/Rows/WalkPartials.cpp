//===- WalkPartials.cpp - partial results in a loop over steps ------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Rows/WalkPartials.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/Layout/LongRows.h"
#include "lib/Transforms/Rows/RowReduce.h"
#include "lib/Transforms/Rows/StackRows.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlafix;

WalkPartials::WalkPartials(KernelOp kernel, ReduceOp op, int64_t steps,
                           int64_t results)
    : op(op), steps(steps), results(results),
      block(llvm::bit_floor<uint64_t>(getMostKept(kernel))) {
  Type element = getElementTypeOrSelf(op.getType());
  bool hasBlocks = results == 1 && steps > block;
  buffer = allocBuffer(kernel, element, hasBlocks ? block : steps);
  if (hasBlocks)
    blocks = allocBuffer(kernel, element, llvm::divideCeil(steps, block));
}

WalkPartials::WalkPartials(OpBuilder &b, KernelOp kernel, ReduceOp op,
                           VectorType type)
    : op(op), type(type), steps(1), results(1), block(1) {
  Type element = type.getElementType();
  buffer = allocBuffer(kernel, element, type.getNumElements());
  Location loc = op.getLoc();
  Value neutral =
      arith::ConstantOp::create(b, loc, neutralOf(op.getKind(), element));
  vector::StoreOp::create(b, loc,
                          vector::BroadcastOp::create(b, loc, type, neutral),
                          buffer, ValueRange{IndexBuilder(b, loc).constant(0)});
}

void WalkPartials::meet(OpBuilder &b, Value pack, Value exists) {
  Location loc = op.getLoc();
  Value zero = IndexBuilder(b, loc).constant(0);
  Value before = vector::LoadOp::create(b, loc, type, buffer, ValueRange{zero});
  Value met = combine(b, loc, op.getKind(), before, pack);
  if (exists)
    met = arith::SelectOp::create(b, loc, exists, met, before);
  vector::StoreOp::create(b, loc, met, buffer, ValueRange{zero});
}

/// Reduces neighbours in place, by the tree of reduceTree(), until `left`
/// values remain. A value without a neighbour is kept.
void WalkPartials::reduce(OpBuilder &b, Value buffer, int64_t count,
                          int64_t left) {
  Location loc = op.getLoc();
  IndexBuilder x(b, loc);
  Value zero = x.constant(0), one = x.constant(1), two = x.constant(2);
  for (; count > left; count = llvm::divideCeil(count, 2)) {
    auto loop = scf::ForOp::create(b, loc, zero, x.constant(count / 2), one);
    OpBuilder body(loop.getBody()->getTerminator());
    IndexBuilder y(body, loc);
    Value even = y.mul(loop.getInductionVar(), two);
    Value first = memref::LoadOp::create(body, loc, buffer, ValueRange{even});
    Value second =
        memref::LoadOp::create(body, loc, buffer, ValueRange{y.add(even, one)});
    Value met = combine(body, loc, op.getKind(), first, second);
    memref::StoreOp::create(body, loc, met, buffer,
                            ValueRange{loop.getInductionVar()});
    if (count % 2) {
      Value last = memref::LoadOp::create(b, loc, buffer,
                                          ValueRange{x.constant(count - 1)});
      memref::StoreOp::create(b, loc, last, buffer,
                              ValueRange{x.constant(count / 2)});
    }
  }
}

/// Reduces the `count` partials in the buffer to the result of block `number`.
void WalkPartials::endBlock(OpBuilder &b, int64_t count, Value number) {
  Location loc = op.getLoc();
  reduce(b, buffer, count, 1);
  Value zero = IndexBuilder(b, loc).constant(0);
  Value whole = memref::LoadOp::create(b, loc, buffer, ValueRange{zero});
  memref::StoreOp::create(b, loc, whole, blocks, ValueRange{number});
}

void WalkPartials::store(OpBuilder &b, Value partial, Value step) {
  Location loc = op.getLoc();
  IndexBuilder x(b, loc);
  Value size = blocks ? x.constant(block) : Value();
  Value place = blocks ? x.rem(step, size) : step;
  memref::StoreOp::create(b, loc, partial, buffer, ValueRange{place});
  if (!blocks)
    return;
  Value isFull =
      x.compare(arith::CmpIPredicate::eq, place, x.constant(block - 1));
  writeIf(b, loc, isFull, [&](OpBuilder &then) {
    endBlock(then, block, IndexBuilder(then, loc).div(step, size));
  });
}

Value WalkPartials::finish(OpBuilder &b) {
  if (isElementwise()) {
    Location loc = op.getLoc();
    Value zero = IndexBuilder(b, loc).constant(0);
    Value pack = vector::LoadOp::create(b, loc, type, buffer, ValueRange{zero});
    Value whole = reduceTree(b, loc, op.getKind(), toElements(b, loc, pack));
    memref::StoreOp::create(b, loc, whole, buffer, ValueRange{zero});
    return buffer;
  }
  if (!blocks) {
    reduce(b, buffer, steps, results);
    return buffer;
  }
  if (int64_t rest = steps % block)
    endBlock(b, rest, IndexBuilder(b, op.getLoc()).constant(steps / block));
  reduce(b, blocks, llvm::divideCeil(steps, block), 1);
  return blocks;
}
