//===- WalkPartials.cpp - reductions over the packs of a walk -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/WalkPartials.h"
#include "lib/Transforms/LongRows.h"
#include "lib/Transforms/RowBuffers.h"
#include "lib/Transforms/RowReduce.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlafix;

WalkPartials::WalkPartials(KernelOp kernel, ReduceOp op, int64_t packs,
                           int64_t results)
    : op(op), packs(packs), results(results),
      block(llvm::bit_floor<uint64_t>(getMostKept(kernel))) {
  Type element = getElementTypeOrSelf(op.getType());
  bool hasBlocks = results == 1 && packs > block;
  buffer = allocBuffer(kernel, element, hasBlocks ? block : packs);
  if (hasBlocks)
    blocks = allocBuffer(kernel, element, llvm::divideCeil(packs, block));
}

/// Neighbours are reduced until `left` values are; one without a neighbour is
/// kept (the tree of reduceTree, in place).
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

/// The buffer has `count` partials: they become one, that of block `number`.
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
  if (!blocks) {
    reduce(b, buffer, packs, results);
    return buffer;
  }
  if (int64_t rest = packs % block)
    endBlock(b, rest, IndexBuilder(b, op.getLoc()).constant(packs / block));
  reduce(b, blocks, llvm::divideCeil(packs, block), 1);
  return blocks;
}
