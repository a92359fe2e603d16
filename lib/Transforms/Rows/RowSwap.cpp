//===- RowSwap.cpp - exchange of neighbouring blocks of a row -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Rows/RowSwap.h"
#include "lib/Transforms/Target.h"
#include "lib/Transforms/ThreadOps.h"
#include "mlafix/UnitLimits.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;
using namespace mlafix;

bool mlafix::swapsInStep(const RowLayout &layout, SwapOp op) {
  int64_t block = op.getBlock();
  return block < layout.walkStep(op.getType());
}

/// Exchanges packs with the lane whose number differs in bit `distance`. The
/// other lane is in another warp, so elements pass through shared memory. They
/// do so in batches that need at most MachineModel::swapBytes of this memory.
static SmallVector<Value> swapAcrossWarps(OpBuilder &b, const RowLayout &layout,
                                          SwapOp op, ValueRange packs,
                                          int64_t distance) {
  Location loc = op.getLoc();
  IndexBuilder x(b, loc);
  auto type = cast<VectorType>(packs.front().getType());
  SmallVector<Value> elements;
  for (Value pack : packs)
    llvm::append_range(elements, toElements(b, loc, pack));
  int64_t lanes = layout.layout.getLanes();
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  auto atOnce = std::clamp<int64_t>(getMachine(op).swapBytes / (lanes * bytes),
                                    1, static_cast<int64_t>(elements.size()));
  Value shared = allocScratch(b, loc, {atOnce * lanes}, type.getElementType());
  Value other =
      arith::XOrIOp::create(b, loc, layout.lane, x.constant(distance));
  // Neighbouring lanes access neighbouring addresses.
  auto placeOf = [&](Value lane, int64_t i) {
    return x.add(x.constant(i * lanes), lane);
  };
  MutableArrayRef<Value> left(elements);
  while (!left.empty()) {
    auto some = left.take_front(atOnce);
    for (auto [i, element] : llvm::enumerate(some))
      memref::StoreOp::create(b, loc, element, shared,
                              ValueRange{placeOf(layout.lane, i)});
    buildBarrier(b, loc);
    for (auto [i, element] : llvm::enumerate(some))
      element =
          memref::LoadOp::create(b, loc, shared, ValueRange{placeOf(other, i)});
    buildBarrier(b, loc); // The next exchange may reuse the shared memory.
    left = left.drop_front(some.size());
  }
  SmallVector<Value> swapped;
  for (ArrayRef<Value> rest(elements); !rest.empty();
       rest = rest.drop_front(type.getNumElements()))
    swapped.push_back(vector::FromElementsOp::create(
        b, loc, type, rest.take_front(type.getNumElements())));
  return swapped;
}

/// Returns the difference between the numbers of lanes that exchange packs.
/// Returns 0 if blocks are smaller than a pack, so that each lane swaps within
/// its packs.
static int64_t getDistance(const RowLayout &layout, SwapOp op) {
  return op.getBlock() / layout.packOf(op.getType());
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
  int64_t distance = getDistance(layout, op);
  if (distance >= limits::warpThreads)
    return swapAcrossWarps(b, layout, op, pack, distance).front();
  Value mask = layout.maskAt(b, op);
  SmallVector<Value> elements = toElements(b, loc, pack);
  for (Value &element : elements)
    element = buildShuffleXor(b, loc, mask, element, distance);
  return vector::FromElementsOp::create(b, loc, type, elements);
}

SmallVector<Value> mlafix::swapPacks(OpBuilder &b, const RowLayout &layout,
                                     SwapOp op, ValueRange packs) {
  int64_t distance = getDistance(layout, op);
  if (swapsInStep(layout, op) && distance >= limits::warpThreads)
    return swapAcrossWarps(b, layout, op, packs, distance);
  SmallVector<Value> swapped;
  int64_t step = layout.walkStep(op.getType());
  for (auto [p, pack] : llvm::enumerate(packs))
    swapped.push_back(swapsInStep(layout, op)
                          ? swapInStep(b, layout, op, pack)
                          : packs[p ^ (op.getBlock() / step)]);
  return swapped;
}
