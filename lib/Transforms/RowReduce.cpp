//===- RowReduce.cpp - a row to one scalar --------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/RowReduce.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlafix;

static TypedAttr neutralOf(ReduceKind kind, Type type) {
  Builder b(type.getContext());
  if (isa<FloatType>(type)) {
    float inf = std::numeric_limits<float>::infinity();
    return b.getF32FloatAttr(kind == ReduceKind::add   ? -0.0f
                             : kind == ReduceKind::max ? -inf
                                                       : inf);
  }
  unsigned width = type.getIntOrFloatBitWidth();
  APInt value = kind == ReduceKind::add   ? APInt(width, 0)
                : kind == ReduceKind::max ? APInt::getSignedMinValue(width)
                                          : APInt::getSignedMaxValue(width);
  return b.getIntegerAttr(type, value);
}

/// Every warp leaves its partials in shared memory, and every thread reads them
/// all.
static void reduceAcrossWarps(OpBuilder &b, Location loc,
                              const RowLayout &layout, ReduceKind kind,
                              SmallVector<Value> &partials) {
  IndexBuilder x(b, loc);
  int64_t warps = layout.layout.getLanes() / kWarpThreads,
          packs = partials.size();
  auto space =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  auto type = MemRefType::get({warps * packs}, partials.front().getType(),
                              AffineMap(), space);
  Value shared = memref::AllocaOp::create(b, loc, type);
  Value warp = x.div(layout.lane, x.constant(kWarpThreads));
  Value isFirst =
      x.compare(arith::CmpIPredicate::eq,
                x.rem(layout.lane, x.constant(kWarpThreads)), x.constant(0));
  writeIf(b, loc, isFirst, [&](OpBuilder &then) {
    IndexBuilder y(then, loc);
    for (auto [p, partial] : llvm::enumerate(partials))
      memref::StoreOp::create(
          then, loc, partial, shared,
          ValueRange{y.add(y.mul(warp, y.constant(packs)), y.constant(p))});
  });
  buildBarrier(b, loc);
  for (auto [p, partial] : llvm::enumerate(partials)) {
    SmallVector<Value> values;
    for (int64_t w = 0; w < warps; ++w)
      values.push_back(memref::LoadOp::create(
          b, loc, shared, ValueRange{x.constant(w * packs + p)}));
    partial = reduceTree(b, loc, kind, values);
  }
  buildBarrier(b, loc); // a loop may come back to this memory
}

Value mlafix::reducePack(OpBuilder &b, const RowLayout &layout, ReduceOp op,
                         Value pack, Value exists) {
  Location loc = op.getLoc();
  SmallVector<Value> elements;
  for (int64_t i = 0, n = layout.packOf(op.getSource().getType()); i < n; ++i)
    elements.push_back(vector::ExtractOp::create(b, loc, pack, i));
  Value partial = reduceTree(b, loc, op.getKind(), elements);
  if (!exists)
    return partial;
  Value neutral = arith::ConstantOp::create(
      b, loc, neutralOf(op.getKind(), partial.getType()));
  return arith::SelectOp::create(b, loc, exists, partial, neutral);
}

void mlafix::reduceAcrossLanes(OpBuilder &b, const RowLayout &layout,
                               ReduceOp op, SmallVector<Value> &partials) {
  Location loc = op.getLoc();
  int64_t lanes = layout.layout.getLanes();
  for (Value &partial : partials)
    for (int64_t distance = 1; distance < std::min(lanes, kWarpThreads);
         distance *= 2)
      partial =
          combine(b, loc, op.getKind(), partial,
                  buildShuffleXor(b, loc, layout.members, partial, distance));
  if (lanes > kWarpThreads)
    reduceAcrossWarps(b, loc, layout, op.getKind(), partials);
}
