//===- RowReduce.cpp - a row to one scalar --------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Rows/RowReduce.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlafix;

Value mlafix::combine(OpBuilder &b, Location loc, ReduceKind kind, Value x,
                      Value y) {
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(x.getType()));
  switch (kind) {
  case ReduceKind::add:
    return isFloat ? Value(arith::AddFOp::create(b, loc, x, y))
                   : Value(arith::AddIOp::create(b, loc, x, y));
  case ReduceKind::max:
    return isFloat ? Value(arith::MaximumFOp::create(b, loc, x, y))
                   : Value(arith::MaxSIOp::create(b, loc, x, y));
  case ReduceKind::min:
    return isFloat ? Value(arith::MinimumFOp::create(b, loc, x, y))
                   : Value(arith::MinSIOp::create(b, loc, x, y));
  }
  llvm_unreachable("all kinds are handled");
}

Value mlafix::reduceTree(OpBuilder &b, Location loc, ReduceKind kind,
                         SmallVector<Value> values) {
  while (values.size() > 1) {
    SmallVector<Value> next;
    for (size_t i = 0; i < values.size(); i += 2)
      next.push_back(i + 1 < values.size()
                         ? combine(b, loc, kind, values[i], values[i + 1])
                         : values[i]);
    values = std::move(next);
  }
  return values.front();
}

TypedAttr mlafix::neutralOf(ReduceKind kind, Type type) {
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

LaneBits mlafix::bitsOf(const RowLayout &layout, DimAttr dim, bool inGroups) {
  int64_t lanes = layout.layout.getLanes();
  LaneBits bits;
  bits.end = lanes;
  if (inGroups)
    bits.end = std::min(lanes, dim.getGroupPacks(layout.layout.getPack()));
  else if (dim.isPerGroup())
    bits.first = std::min(lanes, dim.getGroupPacks(layout.layout.getPack()));
  return bits;
}

Value mlafix::shareAcrossWarps(OpBuilder &b, Location loc,
                               const RowLayout &layout, ValueRange partials) {
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
  return shared;
}

/// The partials of the warps that a thread's own meets, `step` apart from the
/// first of `met` on, reduced in each pack: by a thread that reads all of them
/// while they are few, else by the lanes of every warp, each of which reads
/// those of one warp. Both add them in the order of one tree.
static void reduceAcrossWarps(OpBuilder &b, Location loc,
                              const RowLayout &layout, ReduceKind kind,
                              LaneBits bits, SmallVector<Value> &partials) {
  constexpr size_t kMostRead = 16;
  IndexBuilder x(b, loc);
  int64_t warps = layout.layout.getLanes() / kWarpThreads,
          packs = partials.size();
  Value shared = shareAcrossWarps(b, loc, layout, partials);
  int64_t step = std::max<int64_t>(1, bits.first / kWarpThreads),
          met = bits.end / kWarpThreads;
  Value base; // of this group's warps
  if (met < warps) {
    Value warp = x.div(layout.lane, x.constant(kWarpThreads));
    base = x.mul(x.div(warp, x.constant(met)), x.constant(met * packs));
  }
  bool areShared = size_t(met / step * packs) > kMostRead;
  if (areShared) {
    Value mine = x.mul(x.band(layout.lane, x.constant((met - 1) & -step)),
                       x.constant(packs));
    base = base ? x.add(base, mine) : mine;
  }
  Value all = areShared ? x.i32(-1) : Value();
  for (auto [p, partial] : llvm::enumerate(partials)) {
    SmallVector<Value> values;
    for (int64_t w = 0; w < (areShared ? 1 : met); w += step) {
      Value index = x.constant(w * packs + p);
      values.push_back(memref::LoadOp::create(
          b, loc, shared, ValueRange{base ? x.add(base, index) : index}));
    }
    partial = reduceTree(b, loc, kind, values);
    for (int64_t half = step; areShared && half < met; half *= 2)
      partial = combine(b, loc, kind, partial,
                        buildShuffleXor(b, loc, all, partial, half));
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
  if (op.getInLane())
    return;
  Location loc = op.getLoc();
  LaneBits bits = bitsOf(layout, getTileDim(op.getSource().getType()),
                         /*inGroups=*/isRowTile(op.getType()));
  Value mask = layout.maskAt(b, op);
  for (Value &partial : partials)
    for (int64_t distance = bits.first;
         distance < std::min(bits.end, kWarpThreads); distance *= 2)
      partial = combine(b, loc, op.getKind(), partial,
                        buildShuffleXor(b, loc, mask, partial, distance));
  if (bits.end > kWarpThreads && bits.first < bits.end)
    reduceAcrossWarps(b, loc, layout, op.getKind(), bits, partials);
}

SmallVector<Value> mlafix::reduceAcrossPacks(OpBuilder &b,
                                             const RowLayout &layout,
                                             ReduceOp op,
                                             ArrayRef<Value> partials) {
  Location loc = op.getLoc();
  size_t met = partials.size();
  if (isRowTile(op.getType()))
    met = layout.packsOfGroup(getTileDim(op.getSource().getType()));
  SmallVector<Value> results;
  for (size_t p = 0; p < partials.size(); p += met)
    results.push_back(reduceTree(b, loc, op.getKind(),
                                 SmallVector<Value>(partials.slice(p, met))));
  return results;
}

Value mlafix::broadcastElement(OpBuilder &b, const RowLayout &layout,
                               BroadcastOp op, Value element) {
  Location loc = op.getLoc();
  Value scalar = vector::ExtractOp::create(b, loc, element, 0);
  return vector::BroadcastOp::create(b, loc, layout.packType(op.getType()),
                                     scalar);
}
