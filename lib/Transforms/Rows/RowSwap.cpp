//===- RowSwap.cpp - neighbouring blocks change places --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Rows/RowSwap.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlafix;

bool mlafix::swapsInStep(const RowLayout &layout, SwapOp op) {
  int64_t block = op.getBlock();
  return block < layout.walkStep(op.getType());
}

static SmallVector<Value> toElements(OpBuilder &b, Location loc, Value pack) {
  SmallVector<Value> elements;
  for (int64_t i = 0, n = cast<VectorType>(pack.getType()).getNumElements();
       i < n; ++i)
    elements.push_back(vector::ExtractOp::create(b, loc, pack, i));
  return elements;
}

/// The pack of the lane whose number differs by the bit `distance`, of another
/// warp: through shared memory.
static Value swapAcrossWarps(OpBuilder &b, const RowLayout &layout, SwapOp op,
                             Value pack, int64_t distance) {
  Location loc = op.getLoc();
  IndexBuilder x(b, loc);
  auto vector = cast<VectorType>(pack.getType());
  int64_t size = vector.getNumElements();
  Value shared = allocShared(b, loc, {layout.layout.getLanes() * size},
                             vector.getElementType());
  auto placeOf = [&](Value lane, int64_t i) {
    return x.add(x.mul(lane, x.constant(size)), x.constant(i));
  };
  SmallVector<Value> elements = toElements(b, loc, pack);
  for (auto [i, element] : llvm::enumerate(elements))
    memref::StoreOp::create(b, loc, element, shared,
                            ValueRange{placeOf(layout.lane, i)});
  buildBarrier(b, loc);
  Value other =
      arith::XOrIOp::create(b, loc, layout.lane, x.constant(distance));
  for (auto [i, element] : llvm::enumerate(elements))
    element =
        memref::LoadOp::create(b, loc, shared, ValueRange{placeOf(other, i)});
  buildBarrier(b, loc); // a loop may come back to this memory
  return vector::FromElementsOp::create(b, loc, vector, elements);
}

Value mlafix::swapInStep(OpBuilder &b, const RowLayout &layout, SwapOp op,
                         Value pack) {
  Location loc = op.getLoc();
  auto type = cast<VectorType>(pack.getType());
  int64_t size = type.getNumElements(), block = op.getBlock();
  if (block < size) {
    SmallVector<int64_t> places;
    for (int64_t i = 0; i < size; ++i)
      places.push_back(i ^ block);
    return vector::ShuffleOp::create(b, loc, pack, pack, places);
  }
  int64_t distance = block / size;
  if (distance >= kWarpThreads)
    return swapAcrossWarps(b, layout, op, pack, distance);
  Value mask = layout.maskAt(b, op);
  SmallVector<Value> elements = toElements(b, loc, pack);
  for (Value &element : elements)
    element = buildShuffleXor(b, loc, mask, element, distance);
  return vector::FromElementsOp::create(b, loc, type, elements);
}

SmallVector<Value> mlafix::swapPacks(OpBuilder &b, const RowLayout &layout,
                                     SwapOp op, ValueRange packs) {
  SmallVector<Value> swapped;
  int64_t step = layout.walkStep(op.getType());
  for (auto [p, pack] : llvm::enumerate(packs))
    swapped.push_back(swapsInStep(layout, op)
                          ? swapInStep(b, layout, op, pack)
                          : packs[p ^ (op.getBlock() / step)]);
  return swapped;
}
