//===- RowScan.cpp - prefix scans of a row --------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Rows/RowScan.h"
#include "lib/Transforms/Rows/RowReduce.h"
#include "lib/Transforms/ThreadOps.h"
#include "mlafix/UnitLimits.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlafix;

static Value buildNeutral(OpBuilder &b, Location loc, ReduceKind kind,
                          Type type) {
  return arith::ConstantOp::create(b, loc, neutralOf(kind, type));
}

/// Combines `total`, the total of a left half, with each element of `pack`, a
/// pack of the right half.
static Value addLeft(OpBuilder &b, ScanOp op, Value total, Value pack) {
  Location loc = op.getLoc();
  Value totals = vector::BroadcastOp::create(b, loc, pack.getType(), total);
  return combine(b, loc, op.getKind(), totals, pack);
}

/// Combines a block, which is the elements below a node of the reduction tree
/// (RowScan.h), with the total of its sibling block, `other`. If the sibling is
/// the left one (`isRight` is true), also updates the elements of the block.
static void addHalf(OpBuilder &b, ScanOp op, ScannedPack &scanned, Value other,
                    Value isRight) {
  Location loc = op.getLoc();
  Value neutral = buildNeutral(b, loc, op.getKind(), other.getType());
  Value left = arith::SelectOp::create(b, loc, isRight, other, neutral);
  scanned.pack = addLeft(b, op, left, scanned.pack);
  scanned.total = combine(b, loc, op.getKind(), scanned.total, other);
}

/// Builds an i1 that is true if bit `bit` (a power of two) of `index` is set.
static Value isBitSet(OpBuilder &b, Location loc, Value index, int64_t bit) {
  IndexBuilder x(b, loc);
  Value part = bit == 1 ? index : x.div(index, x.constant(bit));
  return x.compare(arith::CmpIPredicate::eq, x.rem(part, x.constant(2)),
                   x.constant(1));
}

ScannedPack mlafix::scanPack(OpBuilder &b, const RowLayout &layout, ScanOp op,
                             Value pack, Value exists) {
  Location loc = op.getLoc();
  auto type = cast<VectorType>(pack.getType());
  int64_t size = type.getNumElements();
  TypedAttr neutral = neutralOf(op.getKind(), type.getElementType());
  Value neutrals = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(type, Attribute(neutral)));
  for (int64_t bit = 1; bit < size; bit *= 2) {
    // An element in a right half is combined with the last element of the left
    // half, which is the total of that half. An element in a left half is
    // combined with a neutral element.
    SmallVector<int64_t> lefts;
    for (int64_t i = 0; i < size; ++i)
      lefts.push_back(i & bit ? (i & -bit) - 1 : size + i);
    Value left = vector::ShuffleOp::create(b, loc, pack, neutrals, lefts);
    pack = combine(b, loc, op.getKind(), left, pack);
  }
  ScannedPack scanned = {pack,
                         vector::ExtractOp::create(b, loc, pack, size - 1)};
  if (exists)
    scanned.total = arith::SelectOp::create(
        b, loc, exists, scanned.total,
        buildNeutral(b, loc, op.getKind(), type.getElementType()));
  return scanned;
}

/// Scans across the warps of a row through shared memory. There are at most as
/// many warps as lanes in a warp. So each lane reads the totals of one warp,
/// one per pack. The lanes of every warp combine these totals as a tree, each
/// pack on its own.
static void scanAcrossWarps(OpBuilder &b, const RowLayout &layout, ScanOp op,
                            LaneBits bits, SmallVector<ScannedPack> &scanned) {
  Location loc = op.getLoc();
  IndexBuilder x(b, loc);
  SmallVector<Value> partials;
  for (const ScannedPack &each : scanned)
    partials.push_back(each.total);
  Value shared = shareAcrossWarps(b, loc, layout, partials);
  int64_t packs = scanned.size();
  int64_t warps = layout.layout.getLanes() / limits::warpThreads;
  int64_t step = std::max<int64_t>(1, bits.first / limits::warpThreads);
  Value mine = x.band(layout.lane, x.constant((warps - 1) & -step));
  Value base = x.mul(mine, x.constant(packs));
  // One total per pack: that of the block of warps that contains warp `mine`.
  // The block starts as one warp and doubles in each iteration of the loop.
  SmallVector<Value> totals;
  for (int64_t p = 0; p < packs; ++p)
    totals.push_back(memref::LoadOp::create(
        b, loc, shared, ValueRange{x.add(base, x.constant(p))}));
  Value warp = x.div(layout.lane, x.constant(limits::warpThreads));
  Value all = x.i32(-1);
  int64_t met = bits.end / limits::warpThreads;
  for (int64_t half = step; half < met; half *= 2) {
    Value sibling =
        x.toI32(arith::XOrIOp::create(b, loc, warp, x.constant(half)));
    Value isRight = isBitSet(b, loc, warp, half);
    for (auto [total, each] : llvm::zip(totals, scanned)) {
      addHalf(b, op, each, buildShuffleFrom(b, loc, total, sibling), isRight);
      if (2 * half < met)
        total = combine(b, loc, op.getKind(), total,
                        buildShuffleXor(b, loc, all, total, half));
    }
  }
  buildBarrier(b, loc); // The next exchange may reuse the shared memory.
}

void mlafix::scanAcrossLanes(OpBuilder &b, const RowLayout &layout, ScanOp op,
                             SmallVector<ScannedPack> &scanned) {
  Location loc = op.getLoc();
  LaneBits bits =
      bitsOf(layout, getTileDim(op.getSource().getType()), op.getInGroups());
  Value mask = layout.maskAt(b, op);
  for (int64_t distance = bits.first;
       distance < std::min(bits.end, limits::warpThreads); distance *= 2) {
    Value isRight = isBitSet(b, loc, layout.lane, distance);
    for (ScannedPack &each : scanned)
      addHalf(b, op, each, buildShuffleXor(b, loc, mask, each.total, distance),
              isRight);
  }
  if (bits.end > limits::warpThreads && bits.first < bits.end)
    scanAcrossWarps(b, layout, op, bits, scanned);
}

/// Returns the number of a lane's packs that are scanned together: those of a
/// group, or of the whole row.
static int64_t countMetPacks(const RowLayout &layout, ScanOp op) {
  Type row = op.getSource().getType();
  return op.getInGroups() ? layout.packsOfGroup(getTileDim(row))
                          : layout.packsOf(row);
}

SmallVector<Value> mlafix::scanAcrossPacks(OpBuilder &b,
                                           const RowLayout &layout, ScanOp op,
                                           ArrayRef<ScannedPack> scanned) {
  Location loc = op.getLoc();
  int64_t met = countMetPacks(layout, op);
  SmallVector<Value> packs, totals; // one total for each block of `half` packs
  for (const ScannedPack &each : scanned) {
    packs.push_back(each.pack);
    totals.push_back(each.total);
  }
  for (int64_t half = 1; half < met; half *= 2) {
    for (int64_t p = 0, n = packs.size(); p < n; ++p)
      if (p % met & half)
        packs[p] = addLeft(b, op, totals[p / half - 1], packs[p]);
    SmallVector<Value> doubled;
    for (size_t i = 0; i < totals.size(); i += 2)
      doubled.push_back(
          i + 1 < totals.size()
              ? combine(b, loc, op.getKind(), totals[i], totals[i + 1])
              : totals[i]);
    totals = std::move(doubled);
  }
  return packs;
}

int64_t mlafix::countPackBits(const RowLayout &layout, ScanOp op) {
  return llvm::Log2_64_Ceil(countMetPacks(layout, op));
}

Value mlafix::scanAcrossSteps(OpBuilder &b, const RowLayout &layout, ScanOp op,
                              ScannedPack scanned, Value step, Value totals) {
  Location loc = op.getLoc();
  IndexBuilder x(b, loc);
  for (int64_t bit = 0, n = countPackBits(layout, op); bit < n; ++bit) {
    Value place = x.constant(bit);
    Value isRight = isBitSet(b, loc, step, int64_t(1) << bit);
    Value left = memref::LoadOp::create(b, loc, totals, ValueRange{place});
    // The total is stored again in each step of a left half, so it is complete
    // when the right half uses it.
    Value kept = arith::SelectOp::create(b, loc, isRight, left, scanned.total);
    memref::StoreOp::create(b, loc, kept, totals, ValueRange{place});
    addHalf(b, op, scanned, left, isRight);
  }
  return scanned.pack;
}
