//===- RaggedRows.cpp - the rows that a chunk of segments selects ---------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GPU/RaggedRows.h"
#include "lib/Machine/MachineModel.h"
#include "lib/Transforms/GridBody.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlafix;

RaggedRows::RaggedRows(OpBuilder &b, Location loc, int64_t positions,
                       ValueRange inner, Value threadId)
    : b(b), loc(loc), x(b, loc), positions(positions), inner(inner),
      threadId(threadId), prefix(allocShared(b, loc, positions)),
      shift(allocShared(b, loc, positions)) {}

Value RaggedRows::allocShared(OpBuilder &b, Location loc, int64_t size) {
  auto space =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  return memref::AllocaOp::create(
      b, loc, MemRefType::get({size}, b.getI32Type(), AffineMap(), space));
}

Value RaggedRows::saturatingAdd(Value a, Value c) {
  return arith::MinUIOp::create(b, loc, x.add(a, c), x.i32(INT32_MAX));
}

void RaggedRows::addTile(RaggedTile &tile) {
  // One vote of a warp tells all marks.
  if (tile.rows <= kWarpThreads)
    tile.marks = allocShared(b, loc, tile.rows);
  tiles.push_back(&tile);
}

void RaggedRows::clear() {
  for (RaggedTile *tile : tiles) {
    if (!tile->marks)
      continue;
    auto has = scf::IfOp::create(b, loc, x.ult(threadId, x.i32(tile->rows)),
                                 /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(has.thenBlock()->getTerminator());
    memref::StoreOp::create(b, loc, x.i32(0), tile->marks,
                            ValueRange{x.toIndex(threadId)});
  }
}

/// Which tile the block begins with, and with how many others it shares it: as
/// many as there are blocks for, but a power of two of them.
void RaggedRows::shareTile(RaggedTile &tile) {
  Value blocks = buildGridSize(b, loc);
  auto leadingZeros = [&](Value value) {
    return math::CountLeadingZerosOp::create(b, loc, value);
  };
  // tiles - 1, since total is at least 1.
  Value last = x.div(x.sub(total, x.i32(1)), x.i32(tile.rows));
  // floor(log2(blocks)) - ceil(log2(tiles))
  Value ofBlocks = leadingZeros(blocks);
  Value spare = x.sub(x.sub(leadingZeros(last), ofBlocks), x.i32(1));
  tile.shared = arith::MaxSIOp::create(b, loc, spare, x.i32(0));
  tile.first = arith::ShRUIOp::create(b, loc, tile.block, tile.shared);
}

/// Marks where the rows [before, end) of the segment at `position` begin in the
/// block's first tile.
void RaggedRows::mark(const RaggedTile &tile, Value position, Value before,
                      Value end) {
  Value rows = x.i32(tile.rows);
  Value first = x.mul(tile.first, rows);
  Value begin = arith::MaxUIOp::create(b, loc, before, first);
  Value meets =
      x.ult(begin, arith::MinUIOp::create(b, loc, end, x.add(first, rows)));
  auto branch = scf::IfOp::create(b, loc, meets, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  Value place = x.toIndex(x.sub(begin, first));
  memref::StoreOp::create(b, loc, x.add(x.toI32(position), x.i32(1)),
                          tile.marks, place);
}

void RaggedRows::publish(Value position, ArrayRef<Value> starts,
                         ArrayRef<Value> lengths, Value before, Value total) {
  this->total = total;
  for (RaggedTile *tile : tiles)
    shareTile(*tile);
  for (auto [k, length] : llvm::enumerate(lengths)) {
    Value own = x.add(position, x.constant(k));
    memref::StoreOp::create(b, loc, before, prefix, own);
    // What makes a number a row. Of rows that count, it fits.
    memref::StoreOp::create(b, loc, x.sub(x.toI32(starts[k]), before), shift,
                            own);
    Value end = saturatingAdd(before, length);
    for (RaggedTile *tile : tiles)
      if (tile->marks)
        mark(*tile, own, before, end);
    before = end;
  }
}

/// The position of the last prefix that is at most `number` (i32).
Value RaggedRows::search(Value number) {
  Value position = x.constant(0);
  for (int64_t step = positions / 2; step >= 1; step /= 2) {
    Value candidate = x.add(position, x.constant(step));
    Value start = memref::LoadOp::create(b, loc, prefix, ValueRange{candidate});
    position = x.select(x.compare(arith::CmpIPredicate::ule, start, number),
                        candidate, position);
  }
  return position;
}

/// The number after the last row of the segment at `position`, i32.
Value RaggedRows::endOf(Value position) {
  Value next = x.add(position, x.constant(1)), last = x.constant(positions - 1);
  Value known = arith::MinUIOp::create(b, loc, next, last);
  Value end = memref::LoadOp::create(b, loc, prefix, ValueRange{known});
  return x.select(x.compare(arith::CmpIPredicate::ugt, next, last), total, end);
}

/// The position of this thread's row of the block's first tile: the last mark
/// at or before it. Where there is no such row, any number.
Value RaggedRows::findMarked(const RaggedTile &tile) {
  Value at = x.i32(0);
  if (tile.rows > 1) {
    Value lane = x.band(threadId, x.i32(kWarpThreads - 1));
    Value exists = x.ult(lane, x.i32(tile.rows));
    Value own =
        memref::LoadOp::create(b, loc, tile.marks,
                               ValueRange{x.toIndex(arith::MinUIOp::create(
                                   b, loc, lane, x.i32(tile.rows - 1)))});
    Value isMark =
        x.band(exists, x.compare(arith::CmpIPredicate::ne, own, x.i32(0)));
    Value marks = buildBallot(b, loc, isMark);
    Value before =
        x.sub(arith::ShLIOp::create(b, loc, x.i32(2), tile.slot), x.i32(1));
    Value last =
        x.sub(x.i32(kWarpThreads - 1),
              math::CountLeadingZerosOp::create(b, loc, x.band(marks, before)));
    at = arith::MaxSIOp::create(b, loc, last, x.i32(0));
  }
  Value found =
      memref::LoadOp::create(b, loc, tile.marks, ValueRange{x.toIndex(at)});
  return x.toIndex(x.sub(found, x.i32(1)));
}

void RaggedRows::forTile(
    const RaggedTile &tile,
    function_ref<void(Value position, Value row, ValueRange inner)> body) {
  Value rows = x.i32(tile.rows);
  Value blocks = buildGridSize(b, loc);
  Value first = x.add(x.mul(tile.first, rows), tile.slot);
  Value firstPosition = x.constant(0), firstEnd = x.i32(0);
  if (tile.marks) {
    firstPosition = findMarked(tile);
    firstEnd = endOf(firstPosition);
  }
  // This thread's inner indices: the block's part of the tile, then its
  // position in it.
  Value one = x.i32(1);
  Value part = x.band(
      tile.block, x.sub(arith::ShLIOp::create(b, loc, one, tile.shared), one));
  Value firstInner =
      x.toIndex(x.add(x.mul(part, x.i32(tile.perRow)), tile.place));
  Value innerStep =
      x.toIndex(arith::ShLIOp::create(b, loc, x.i32(tile.perRow), tile.shared));
  Value innerSize = x.constant(1);
  for (Value extent : inner)
    innerSize = x.mul(innerSize, extent);

  Value step = x.toIndex(x.mul(blocks, rows));
  Value upper = x.toIndex(total), lower = x.toIndex(first);
  auto loop = scf::ForOp::create(b, loc, lower, upper, step,
                                 ValueRange{firstPosition, firstEnd});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value number = x.toI32(loop.getInductionVar());
  Value position = loop.getRegionIterArg(0), end = loop.getRegionIterArg(1);
  // The search is left out where a row is of the same segment as the one
  // before.
  auto isNew = scf::IfOp::create(
      b, loc, TypeRange{b.getIndexType(), b.getI32Type()},
      x.compare(arith::CmpIPredicate::uge, number, end), true);
  b.setInsertionPointToStart(isNew.elseBlock());
  scf::YieldOp::create(b, loc, ValueRange{position, end});
  b.setInsertionPointToStart(isNew.thenBlock());
  Value found = search(number);
  scf::YieldOp::create(b, loc, ValueRange{found, endOf(found)});
  b.setInsertionPointToEnd(loop.getBody());
  position = isNew.getResult(0);
  Value row = x.toIndex(x.add(
      memref::LoadOp::create(b, loc, shift, ValueRange{position}), number));
  auto yield = scf::YieldOp::create(b, loc, isNew.getResults());
  b.setInsertionPoint(yield);
  buildLoop(b, loc, firstInner, innerSize, innerStep, [&](Value linear) {
    body(position, row, x.delinearize(linear, inner));
  });
}
