//===- RowReduce.cpp - reduction of a row to a scalar ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Rows/RowReduce.h"

#include "dialect/MlafixThread.h"
#include "lib/Transforms/Rows/RowAccess.h"
#include "lib/Transforms/Target.h"
#include "lib/Transforms/ThreadOps.h"
#include "mlafix/UnitLimits.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

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

/// Returns the number of a row's lanes in each thread block. A row that is
/// longer than a block has several blocks.
static int64_t countBlockLanes(const RowLayout &layout) {
  return layout.layout.getLanes() / layout.layout.getBlocks();
}

/// Returns the number of this thread's lane within its thread block.
static Value getBlockLane(OpBuilder &b, Location loc, const RowLayout &layout) {
  if (!layout.layout.isClustered())
    return layout.lane;
  IndexBuilder x(b, loc);
  return x.band(layout.lane, x.constant(countBlockLanes(layout) - 1));
}

Value mlafix::shareAcrossWarps(OpBuilder &b, Location loc,
                               const RowLayout &layout, ValueRange partials) {
  IndexBuilder x(b, loc);
  int64_t warps = countBlockLanes(layout) / limits::warpThreads,
          packs = partials.size();
  Value shared =
      allocScratch(b, loc, {warps * packs}, partials.front().getType());
  Value lane = getBlockLane(b, loc, layout);
  Value warp = x.div(lane, x.constant(limits::warpThreads));
  Value isFirst =
      x.compare(arith::CmpIPredicate::eq,
                x.rem(lane, x.constant(limits::warpThreads)), x.constant(0));
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

//===----------------------------------------------------------------------===//
// Spread partials
//===----------------------------------------------------------------------===//
//
// The partials of several packs are spread over the lanes while they are
// exchanged. In each step, a bit of the lane number decides which half of its
// partials a lane keeps. The lane sends the other half to the lane that keeps
// those partials. Each sum adds the same two numbers as in an exchange of all
// partials, so the tree is the same. But a step needs only one shuffle and one
// addition for every two partials that a lane still has.

/// Returns the number of the lane that keeps the partial of pack `pack`, if
/// there are `packs` packs. It is the bit-reversed pack number.
static int64_t getKeeper(int64_t pack, int64_t packs) {
  int64_t keeper = 0;
  for (int64_t bit = 1, half = packs / 2; half > 0; bit *= 2, half /= 2)
    keeper |= (pack & half) ? bit : 0;
  return keeper;
}

/// Returns true if the partials of `packs` packs can be spread over the lanes
/// that differ in `bits`.
static bool areSpread(LaneBits bits, int64_t packs) {
  return packs > 1 && llvm::isPowerOf2_64(packs) && bits.first == 1 &&
         packs <= std::min(bits.end, limits::warpThreads);
}

/// Reduces `partials` across `lanes` lanes. Each result ends up in the lanes
/// whose low bits are the number that getKeeper() returns for its pack.
static Value spreadAcrossLanes(OpBuilder &b, Location loc, ReduceKind kind,
                               Value lane, Value mask, int64_t lanes,
                               SmallVector<Value> partials) {
  IndexBuilder x(b, loc);
  for (int64_t distance = 1; distance < lanes; distance *= 2) {
    size_t kept = std::max<size_t>(1, partials.size() / 2);
    Value isUpper;
    if (partials.size() > 1)
      isUpper = x.compare(arith::CmpIPredicate::ne,
                          x.band(lane, x.constant(distance)), x.constant(0));
    for (size_t p = 0; p < kept; ++p) {
      Value mine = partials[p], other = mine;
      if (isUpper) {
        Value lower = mine, upper = partials[p + kept];
        mine = arith::SelectOp::create(b, loc, isUpper, upper, lower);
        other = arith::SelectOp::create(b, loc, isUpper, lower, upper);
      }
      partials[p] = combine(b, loc, kind, mine,
                            buildShuffleXor(b, loc, mask, other, distance));
    }
    partials.resize(kept);
  }
  return partials.front();
}

/// Combines the partials of `packs` packs to one partial, as a tree. `partial`
/// is the partial that this lane keeps, one of `packs` lanes.
static Value joinKept(OpBuilder &b, Location loc, ReduceKind kind, Value mask,
                      int64_t packs, Value partial) {
  for (int64_t distance = packs / 2; distance > 0; distance /= 2)
    partial = combine(b, loc, kind, partial,
                      buildShuffleXor(b, loc, mask, partial, distance));
  return partial;
}

/// Does the same as shareAcrossWarps() if each lane keeps the partial of only
/// one of the `packs` packs: stores the partials to shared memory for all
/// threads to read, and returns the memory.
static Value shareKept(OpBuilder &b, Location loc, const RowLayout &layout,
                       int64_t packs, Value partial) {
  IndexBuilder x(b, loc);
  int64_t warps = countBlockLanes(layout) / limits::warpThreads;
  Value shared = allocScratch(b, loc, {warps * packs}, partial.getType());
  Value lane = getBlockLane(b, loc, layout);
  Value warp = x.div(lane, x.constant(limits::warpThreads));
  Value inWarp = x.rem(lane, x.constant(limits::warpThreads));
  Value isKeeper =
      x.compare(arith::CmpIPredicate::ult, inWarp, x.constant(packs));
  writeIf(b, loc, isKeeper, [&](OpBuilder &then) {
    IndexBuilder y(then, loc);
    Value index = y.add(y.mul(warp, y.constant(packs)), inWarp);
    memref::StoreOp::create(then, loc, partial, shared, ValueRange{index});
  });
  buildBarrier(b, loc);
  return shared;
}

//===----------------------------------------------------------------------===//
// Across blocks
//===----------------------------------------------------------------------===//
//
// Each block of a cluster pushes its partials into the shared memory of all
// blocks, and reads its own memory when all blocks have done so. Each reduction
// has memory of its own. In a loop, each iteration uses this memory again, so
// cluster barriers separate the pushes from the reads before and after them.

namespace {
/// The layout of the partials of all blocks in the shared memory of each block.
struct BlockPartials {
  /// If `areKept` is true, each thread holds the partial of one of the `packs`
  /// packs, else the partials of all packs.
  BlockPartials(const RowLayout &layout, int64_t packs, bool areKept)
      : blocks(layout.layout.getBlocks()), packs(packs), areKept(areKept),
        areSharedOut(areKept &&
                     blocks * packs > getMachine(layout.kernel).readPartials),
        read(areSharedOut
                 ? std::max<int64_t>(1, blocks * packs / limits::warpThreads)
                 : 1) {}

  /// Returns the index in shared memory of a partial of block `block`. If
  /// `areKept` is true, `pack` is the number of the lane that keeps the partial
  /// (getKeeper). Otherwise `pack` is 0, and the index is that of the first
  /// pack's partial. The partials that one lane reads are adjacent.
  Value placeOf(IndexBuilder &x, Value block, Value pack) const {
    Value group = x.mul(x.div(block, x.constant(read)), x.constant(packs));
    return x.add(x.mul(x.add(group, pack), x.constant(read)),
                 x.rem(block, x.constant(read)));
  }

  int64_t blocks, packs;
  bool areKept;
  // True if the lanes of a warp share the reads and then shuffle.
  bool areSharedOut;
  int64_t read; // number of partials that a lane reads, of consecutive blocks
};
} // namespace

/// Pushes this block's `partials` into the shared memory of all blocks, with
/// different threads for different blocks. Returns this block's memory, which
/// the caller must not read before the partials of the other blocks are there.
static Value pushToBlocks(OpBuilder &b, Location loc, const RowLayout &layout,
                          const BlockPartials &of, ValueRange partials) {
  IndexBuilder x(b, loc);
  Value shared =
      allocShared(b, loc, {of.blocks * of.packs}, partials.front().getType());
  Value lane = getBlockLane(b, loc, layout);
  Value mine = x.div(layout.lane, x.constant(countBlockLanes(layout)));
  // The number of threads that store to each block.
  int64_t threads = of.areKept ? of.packs : 1;
  Value first = of.placeOf(x, mine, x.rem(lane, x.constant(threads)));
  Value block = x.toI32(x.div(lane, x.constant(threads)));
  Value isSender = x.compare(arith::CmpIPredicate::ult, lane,
                             x.constant(threads * of.blocks));
  writeIf(b, loc, isSender, [&](OpBuilder &then) {
    IndexBuilder y(then, loc);
    for (auto [p, partial] : llvm::enumerate(partials))
      PushOp::create(then, loc, partial, shared,
                     y.add(first, y.constant(int64_t(p))), block);
  });
  return shared;
}

/// Exchanges `partials` between the blocks of a cluster and reduces them per
/// pack. On entry, `partials` has one element per pack, or, if `packs >
/// partials.size()`, only that of the pack that this thread keeps. On exit,
/// there is a single partial of all packs if lanes share the reads, else one
/// partial per pack.
static void reduceAcrossBlocks(OpBuilder &b, ReduceOp op,
                               const RowLayout &layout, int64_t packs,
                               SmallVector<Value> &partials) {
  Location loc = op.getLoc();
  IndexBuilder x(b, loc);
  ReduceKind kind = op.getKind();
  BlockPartials of(layout, packs, packs > int64_t(partials.size()));
  Value shared = pushToBlocks(b, loc, layout, of, partials);
  Region *region = b.getInsertionBlock()->getParent();
  auto loop = region->getParentOfType<LoopLikeOpInterface>();
  if (loop)
    buildClusterBarrier(b, loc);
  else
    AwaitPushesOp::create(b, loc, shared);
  auto reduceFrom = [&](Value first, int64_t count, int64_t step) {
    SmallVector<Value> values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(memref::LoadOp::create(
          b, loc, shared, ValueRange{x.add(first, x.constant(i * step))}));
    return reduceTree(b, loc, kind, values);
  };
  partials.clear();
  if (of.areSharedOut) {
    int64_t lanes = of.blocks * packs / of.read;
    Value all = x.i32(-1);
    Value first =
        x.mul(x.rem(layout.lane, x.constant(lanes)), x.constant(of.read));
    Value partial = reduceFrom(first, of.read, /*step=*/1);
    for (int64_t distance = packs; distance < lanes; distance *= 2)
      partial = combine(b, loc, kind, partial,
                        buildShuffleXor(b, loc, all, partial, distance));
    partials = {joinKept(b, loc, kind, all, packs, partial)};
  } else {
    for (int64_t p = 0; p < packs; ++p)
      partials.push_back(
          reduceFrom(x.constant(of.areKept ? getKeeper(p, packs) : p),
                     of.blocks, /*step=*/packs));
  }
  if (loop)
    buildClusterBarrier(b, loc);
}

//===----------------------------------------------------------------------===//
// Across warps and lanes
//===----------------------------------------------------------------------===//

/// Exchanges partials between warps and reduces them per pack. In a cluster,
/// reduceAcrossBlocks() then combines the results of the blocks.
///
/// `bits` says which warps of a block are combined. `met` = bits.end / 32
/// adjacent warps hold a group of a row or a whole row (in a cluster, the part
/// of the row in this block). Every `step`-th of these warps takes part, where
/// `step` = bits.first / 32, at least 1.
///
/// If there are few partials, each thread reads all of them. Otherwise the
/// lanes of each warp share the reads: each lane reads the partials of one
/// warp, and shuffles combine what the lanes have read, by the same tree in
/// every warp.
///
/// On entry, a lane has the partials of all `packs` packs, or keeps the partial
/// of one pack. On exit, there is one partial per pack. Exception: if each lane
/// keeps one partial and lanes share the reads, there may be a single partial
/// of all packs.
static void reduceAcrossWarps(OpBuilder &b, ReduceOp op,
                              const RowLayout &layout, LaneBits bits,
                              int64_t packs, SmallVector<Value> &partials) {
  Location loc = op.getLoc();
  ReduceKind kind = op.getKind();
  IndexBuilder x(b, loc);
  int64_t warps = countBlockLanes(layout) / limits::warpThreads;
  bool areKept = packs > int64_t(partials.size());
  Value shared = areKept ? shareKept(b, loc, layout, packs, partials.front())
                         : shareAcrossWarps(b, loc, layout, partials);
  int64_t step = std::max<int64_t>(1, bits.first / limits::warpThreads),
          met = bits.end / limits::warpThreads;
  Value base; // index of this group's first partial in `shared`; null: 0
  if (met < warps) {
    Value warp = x.div(layout.lane, x.constant(limits::warpThreads));
    base = x.mul(x.div(warp, x.constant(met)), x.constant(met * packs));
  }
  bool areShared = met / step * packs > getMachine(layout.kernel).readPartials;
  if (areShared) {
    Value mine = x.mul(x.band(layout.lane, x.constant((met - 1) & -step)),
                       x.constant(packs));
    base = base ? x.add(base, mine) : mine;
  }
  Value all = areShared ? x.i32(-1) : Value();
  partials.clear();
  for (int64_t p = 0; p < packs; ++p) {
    SmallVector<Value> values;
    for (int64_t w = 0; w < (areShared ? 1 : met); w += step) {
      Value index = x.constant(w * packs + (areKept ? getKeeper(p, packs) : p));
      values.push_back(memref::LoadOp::create(
          b, loc, shared, ValueRange{base ? x.add(base, index) : index}));
    }
    partials.push_back(reduceTree(b, loc, kind, values));
  }
  if (areShared && areKept && packs <= met) {
    Value partial = spreadAcrossLanes(b, loc, kind, layout.lane, all, met,
                                      std::move(partials));
    partials = {layout.layout.isClustered()
                    ? partial
                    : joinKept(b, loc, kind, all, packs, partial)};
  } else if (areShared) {
    for (Value &partial : partials)
      for (int64_t half = step; half < met; half *= 2)
        partial = combine(b, loc, kind, partial,
                          buildShuffleXor(b, loc, all, partial, half));
  }
  // reduceAcrossBlocks() separates the loads from the next exchange.
  if (layout.layout.isClustered())
    return reduceAcrossBlocks(b, op, layout, packs, partials);
  buildBarrier(b, loc); // The next exchange may reuse the shared memory.
}

/// Returns true if all elements of `pack` are INT32_MAX.
static bool isGreatest(Value pack) {
  if (auto broadcast = pack.getDefiningOp<vector::BroadcastOp>())
    pack = broadcast.getSource();
  APInt number;
  return matchPattern(pack, m_ConstantInt(&number)) &&
         number.getBitWidth() == 32 && number.isMaxSignedValue();
}

/// Returns the first index of a pack of consecutive indices: a broadcast of
/// this index plus the constant [0, 1, 2, ...]. Returns null if `pack` has
/// another form.
static Value getFirstIndex(Value pack) {
  auto sum = pack.getDefiningOp<arith::AddIOp>();
  auto first =
      sum ? sum.getLhs().getDefiningOp<vector::BroadcastOp>() : nullptr;
  DenseIntElementsAttr steps;
  if (!first || !matchPattern(sum.getRhs(), m_Constant(&steps)))
    return {};
  auto isStep = [](auto step) { return step.value() == int64_t(step.index()); };
  return llvm::all_of(llvm::enumerate(steps.getValues<APInt>()), isStep)
             ? first.getSource()
             : Value();
}

/// Lowers the minimum of a pack of the form (condition ? index : INT32_MAX).
/// Builds one select per element, from the last element to the first, instead
/// of additions and minima. Returns null if `pack` has another form.
static Value selectLeastIndex(OpBuilder &b, Location loc, Value pack) {
  auto choice = pack.getDefiningOp<arith::SelectOp>();
  auto type = cast<VectorType>(pack.getType());
  if (!choice || type.getNumElements() == 1 ||
      !isa<VectorType>(choice.getCondition().getType()) ||
      !isGreatest(choice.getFalseValue()))
    return {};
  Value first = getFirstIndex(choice.getTrueValue());
  if (!first)
    return {};
  IndexBuilder x(b, loc);
  Value least = x.i32(-1);
  for (int64_t i = type.getNumElements() - 1; i >= 0; --i)
    least =
        x.select(vector::ExtractOp::create(b, loc, choice.getCondition(), i),
                 x.i32(i), least);
  Value isNone = x.compare(arith::CmpIPredicate::slt, least, x.i32(0));
  return x.select(isNone, x.i32(INT32_MAX), x.add(first, least));
}

/// Returns the scalar or vector `value`, or the neutral element where the i1
/// `exists` is false (null: always true).
static Value orNeutral(OpBuilder &b, Location loc, ReduceKind kind, Value value,
                       Value exists) {
  if (!exists)
    return value;
  TypedAttr neutral = neutralOf(kind, getElementTypeOrSelf(value));
  if (auto type = dyn_cast<ShapedType>(value.getType()))
    neutral = DenseElementsAttr::get(type, Attribute(neutral));
  return arith::SelectOp::create(b, loc, exists, value,
                                 arith::ConstantOp::create(b, loc, neutral));
}

Value mlafix::reducePack(OpBuilder &b, const RowLayout &layout, ReduceOp op,
                         Value pack, Value exists) {
  Location loc = op.getLoc();
  Value partial;
  if (layout.isGPU && op.getKind() == ReduceKind::min)
    partial = selectLeastIndex(b, loc, pack);
  if (!partial) {
    partial = reduceTree(b, loc, op.getKind(), toElements(b, loc, pack));
  }
  return orNeutral(b, loc, op.getKind(), partial, exists);
}

bool mlafix::isNarrowExtreme(ReduceOp op) {
  MachineModel machine = getMachine(op);
  if (!machine.narrowExtremes || !machine.narrowWords ||
      op.getKind() == ReduceKind::add || isRowTile(op.getType()))
    return false;
  Value row = op.getSource();
  if (auto magnitude = row.getDefiningOp<math::AbsFOp>())
    row = magnitude.getOperand();
  auto load = row.getDefiningOp<LoadOp>();
  return load && isa<BFloat16Type, Float16Type>(
                     load.getSource().getType().getElementType());
}

Value mlafix::reduceInHalves(OpBuilder &b, const RowLayout &layout, ReduceOp op,
                             ValueRange packs) {
  Location loc = op.getLoc();
  Value all;
  for (auto [p, pack] : llvm::enumerate(packs)) {
    Value next = orNeutral(
        b, loc, op.getKind(), pack,
        layout.positionOf(b, loc, op.getSource().getType(), p).exists);
    all = all ? combine(b, loc, op.getKind(), all, next) : next;
  }
  int64_t size = cast<VectorType>(all.getType()).getNumElements();
  for (; size > 2 && size % 2 == 0; size /= 2) {
    auto half = [&](int64_t first) -> Value {
      return vector::ExtractStridedSliceOp::create(
          b, loc, all, ArrayRef<int64_t>{first}, ArrayRef<int64_t>{size / 2},
          ArrayRef<int64_t>{1});
    };
    all = combine(b, loc, op.getKind(), half(0), half(size / 2));
  }
  return reduceTree(b, loc, op.getKind(), toElements(b, loc, all));
}

void mlafix::reduceAcrossLanes(OpBuilder &b, const RowLayout &layout,
                               ReduceOp op, SmallVector<Value> &partials) {
  if (op.getInLane())
    return;
  Location loc = op.getLoc();
  bool inGroups = isRowTile(op.getType());
  LaneBits bits =
      bitsOf(layout, getTileDim(op.getSource().getType()), inGroups);
  Value mask = layout.maskAt(b, op);
  if (layout.layout.isClustered()) {
    // Pad the partials with the neutral element to a power of two, so that they
    // can be spread over the lanes.
    Value neutral = arith::ConstantOp::create(
        b, loc, neutralOf(op.getKind(), partials.front().getType()));
    partials.resize(llvm::PowerOf2Ceil(partials.size()), neutral);
    bits.end = countBlockLanes(layout);
  }
  auto packs = static_cast<int64_t>(partials.size());
  bool isSpread = !inGroups && areSpread(bits, packs);
  bool acrossWarps = layout.layout.isClustered() ||
                     (bits.end > limits::warpThreads && bits.first < bits.end);
  if (isSpread) {
    Value partial =
        spreadAcrossLanes(b, loc, op.getKind(), layout.lane, mask,
                          std::min(bits.end, limits::warpThreads), partials);
    if (!acrossWarps)
      partial = joinKept(b, loc, op.getKind(), mask, packs, partial);
    partials = {partial};
  } else {
    for (Value &partial : partials)
      for (int64_t distance = bits.first;
           distance < std::min(bits.end, limits::warpThreads); distance *= 2)
        partial = combine(b, loc, op.getKind(), partial,
                          buildShuffleXor(b, loc, mask, partial, distance));
  }
  if (acrossWarps)
    reduceAcrossWarps(b, op, layout, bits, packs, partials);
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
