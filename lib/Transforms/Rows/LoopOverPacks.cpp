//===- LoopOverPacks.cpp - turn long rows into loops over packs -----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/MlafixThread.h"
#include "dialect/Plan.h"
#include "lib/Transforms/AccessPredicate.h"
#include "lib/Transforms/GridLowering.h"
#include "lib/Transforms/Layout/LaneConflicts.h"
#include "lib/Transforms/Layout/LongRows.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Rows/PackAccess.h"
#include "lib/Transforms/Rows/RowReduce.h"
#include "lib/Transforms/Rows/RowScan.h"
#include "lib/Transforms/Rows/RowSwap.h"
#include "lib/Transforms/Rows/StackRows.h"
#include "lib/Transforms/Rows/WalkPartials.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"
#include "llvm/Support/MathExtras.h"

#include <deque>
#include <map>
#include <tuple>

#define DEBUG_TYPE "mlafix-loop-over-packs"

namespace mlafix {
#define GEN_PASS_DEF_LOOPOVERPACKSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

namespace {
/// The stage of each op in a block. Stages execute in order. In each stage the
/// scalar ops come first, then the ops on rows, one after the other for the
/// packs of an iteration.
using Stages = llvm::DenseMap<mlir::Operation *, int64_t>;
} // namespace

//===----------------------------------------------------------------------===//
// Rows that are recomputed
//===----------------------------------------------------------------------===//

/// Returns true if a store in stage `stored` does not change the row that a
/// load reads in stage `stage`. Arguments with different dims are never the
/// same tensor.
static bool leavesRow(KernelOp kernel, const MemoryAccess &load,
                      const MemoryAccess &store, int64_t stage,
                      int64_t stored) {
  if (!store.getArgument() ||
      kernel.getArgDims(load.getArgNumber()) !=
          kernel.getArgDims(store.getArgNumber()) ||
      load.getElementType() != store.getElementType())
    return true;
  // In a conflict, another lane may store what this lane loads, so the load
  // would have to wait for that lane.
  if (mayConflict(kernel, load, store))
    return false;
  if (load.memref != store.memref &&
      areGuardedDistinct(kernel.getGuardsAttr(), load.getArgNumber(),
                         store.getArgNumber()))
    return true;
  // The store writes the packs that the same lane loads. So the store is
  // harmless if it follows the load: in a later stage, or in this stage if both
  // access the same row.
  bool isSameRow = llvm::equal(load.indices, store.indices) &&
                   load.group == store.group && load.member == store.member &&
                   !load.allMembers && !store.allMembers;
  return stored > stage || (stored == stage && isSameRow);
}

/// Returns true if the memory that `load` reads still has the same contents in
/// stage `stage`.
static bool canReload(KernelOp kernel, const Stages &stages,
                      const MemoryAccess &load, int64_t stage) {
  if (!load.getArgument() || kernel.isArgPeers(load.getArgNumber()))
    return false;
  for (Operation *op = load.op->getNextNode(); op; op = op->getNextNode()) {
    if (op->hasTrait<OpTrait::IsTerminator>())
      continue;
    // The rows of a nested block become loops of their own, which precede the
    // loops of this op's stage. So the stores in the nested block count as one
    // stage earlier.
    int64_t stored = stages.lookup(op) - (op->getNumRegions() > 0 ? 1 : 0);
    for (const MemoryAccess &other : collectAccesses(op))
      if (other.isWrite && !leavesRow(kernel, load, other, stage, stored))
        return false;
  }
  return true;
}

/// Implements canRematerialize(). Rows in `seen` have been visited, and are not
/// visited again.
static bool canRepeatOthers(KernelOp kernel, const Stages &stages, Value row,
                            int64_t stage, function_ref<bool(Value)> isKept,
                            llvm::DenseSet<Value> &seen) {
  if (!seen.insert(row).second)
    return true;
  Operation *op = row.getDefiningOp();
  if (isKept(row) || (op && isUniform(op)))
    return true;
  if (!op || op->getNumRegions() > 0)
    return false;
  if (std::optional<MemoryAccess> load = getSingleAccess(op))
    return canReload(kernel, stages, *load, stage);
  if (!isPackwise(op) && !isa<ScanOp, BroadcastOp>(op))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return !isRowTile(operand.getType()) ||
           canRepeatOthers(kernel, stages, operand, stage, isKept, seen);
  });
}

/// Returns true if `row`, computed in an earlier stage, can be recomputed pack
/// by pack in stage `stage`, before other ops of this stage on the same pack:
/// its inputs are available rows (`isKept`), or memory that has not changed.
static bool canRematerialize(KernelOp kernel, const Stages &stages, Value row,
                             int64_t stage, function_ref<bool(Value)> isKept) {
  llvm::DenseSet<Value> seen;
  return canRepeatOthers(kernel, stages, row, stage, isKept, seen);
}

// Long rows are processed in loops, since unrolled code would have tens of
// thousands of instructions. Reductions divide the ops of a block into stages.
// In each stage the scalar ops come first, then one loop over packs for all ops
// on rows of the same length. A row that a later stage needs is kept in a stack
// buffer, or recomputed if it is too long for one (canRematerialize). Rows that
// cross control flow are in buffers already (SpillRows.cpp), so each block has
// its own rows.

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

namespace {

/// A pack that an iteration of a loop over packs processes.
struct WalkPosition {
  int64_t number;     // of the pack in its iteration
  Value base;         // position in the walk over the packs of all lanes
  PackPosition place; // position of this lane's pack in the row
  Value local;        // position in this lane's buffers, in elements
};

class LoopDistribution {
public:
  LoopDistribution(KernelOp kernel, Block &block)
      : kernel(kernel), layout(kernel), block(block) {}

  /// Assigns stages and decides which rows are kept. Both depend on the memory
  /// effects of nested blocks, which run() changes, so plan() must be called
  /// for all blocks before run() is called for any.
  void plan();
  void run();

private:
  void assignStages();
  void chooseKeptRows();
  void buildLoop(int64_t stage, Type tile, ArrayRef<Operation *> ops);
  bool takesPacksInOrder(Operation *op, llvm::DenseSet<Operation *> &seen);
  int64_t countAtOnce(Type tile, ArrayRef<Operation *> ops);
  WalkPosition buildPosition(OpBuilder &b, Location loc, Type tile, Value base,
                             int64_t number, int64_t atOnce);
  Value getPack(OpBuilder &b, Value tile, const WalkPosition &place);
  void buildPartial(OpBuilder &b, ReduceOp reduce,
                    ArrayRef<WalkPosition> places);
  Value buildScan(OpBuilder &b, ScanOp scan, const WalkPosition &place);
  Value buildSwap(OpBuilder &b, SwapOp swap, const WalkPosition &place);
  bool isFarSwap(Operation *op);
  Value getStep(OpBuilder &b, Location loc, Type tile, Value base,
                int64_t atOnce = 1);
  void buildOps(OpBuilder &b, ArrayRef<Operation *> ops,
                ArrayRef<WalkPosition> places);
  Value buildOp(OpBuilder &b, Operation *op, const WalkPosition &place);
  Value buildBroadcast(OpBuilder &b, BroadcastOp op, const WalkPosition &place);
  bool isElementwise(ReduceOp reduce) const;
  void allocPartials(OpBuilder &b, ArrayRef<Operation *> ops, int64_t atOnce);
  Value buildWalkEnd(OpBuilder &b, Location loc, Type tile);
  void fillPartials(OpBuilder &b, ArrayRef<Operation *> ops, Type tile,
                    Value end, int64_t atOnce);
  void finishReduction(OpBuilder &b, ReduceOp op);
  bool isMadeAgain(Value row, int64_t stage);

  KernelOp kernel;
  RowLayout layout;
  Block &block;
  Stages stages;
  llvm::DenseSet<Value> kept; // rows that get a buffer
  // The buffer of each row in `kept` that has been computed.
  llvm::DenseMap<Value, Value> buffers;
  llvm::DenseMap<Value, Value> lefts; // `totals` of scanAcrossSteps(), by scan
  // Packs computed in the current loop, by row and number in the iteration.
  llvm::DenseMap<std::pair<Value, int64_t>, Value> packs;
  llvm::DenseMap<Operation *, WalkPartials> partials; // by reduction
};
} // namespace

/// Returns the ops of `block` whose results are used by `op` or by an op nested
/// in it.
static SmallVector<Operation *> getProducers(Operation *op, Block &block) {
  SmallVector<Operation *> producers;
  op->walk([&](Operation *nested) {
    for (Value operand : nested->getOperands())
      if (Operation *def = operand.getDefiningOp();
          def && def->getBlock() == &block)
        producers.push_back(def);
  });
  return producers;
}

namespace {
/// A class of memory accesses. The classes of two accesses decide whether the
/// later one may be in the same stage as the earlier one (mustPrecede).
struct AccessClass {
  bool isTile, writes;
  // Kind in AccessKinds; nullopt unless an argument is accessed.
  std::optional<unsigned> kind;

  auto asTuple() const { return std::tuple(isTile, writes, kind); }
  bool operator<(const AccessClass &other) const {
    return asTuple() < other.asTuple();
  }
};
} // namespace

static AccessClass classify(Operation *op, AccessKinds &kinds) {
  AccessClass result{isTileOp(op), mayWrite(op), std::nullopt};
  std::optional<MemoryAccess> access = getSingleAccess(op);
  // A stage accesses a buffer in one loop, so only arguments need kinds.
  if (access && access->getArgument())
    result.kind = kinds.getKind(*access);
  return result;
}

/// Returns true if `later`, which must follow `earlier`, would precede it in
/// the same stage. In a stage, scalars execute before rows, and rows of one dim
/// before rows of another dim.
static bool mustPrecede(const AccessClass &earlier, const AccessClass &later,
                        AccessKinds &kinds) {
  if (!earlier.isTile || !later.isTile)
    return earlier.isTile;
  return earlier.kind && later.kind &&
         kinds.getConflicts(*earlier.kind).test(*later.kind);
}

/// Returns true if `op` reads packs of other steps of the walk.
bool LoopDistribution::isFarSwap(Operation *op) {
  auto swap = dyn_cast<SwapOp>(op);
  return swap && !swapsInStep(layout, swap);
}

/// Assigns to each op the first stage in which all of its operands are
/// available. Results of reductions, and packs that a swap reads from other
/// steps of the walk, are available one stage after the op that computes them.
void LoopDistribution::assignStages() {
  AccessKinds kinds([=](const MemoryAccess &a, const MemoryAccess &b) {
    return (a.getRowDim() != b.getRowDim() || !a.isPartAs(b)) &&
           mayConflict(kernel, a, b);
  });
  std::map<AccessClass, int64_t> latest; // latest stage so far of each class
  for (Operation &op : block.without_terminator()) {
    int64_t stage = 0;
    for (Operation *producer : getProducers(&op, block))
      stage = std::max(stage, stages[producer] +
                                  (isa<ReduceOp>(producer) || isFarSwap(&op)));
    if (!isMemoryEffectFree(&op)) {
      AccessClass mine = classify(&op, kinds);
      for (const auto &[earlier, last] : latest)
        if (earlier.writes || mine.writes)
          stage = std::max(stage,
                           last + (mustPrecede(earlier, mine, kinds) ? 1 : 0));
      int64_t &last = latest[mine];
      last = std::max(last, stage);
    }
    stages[&op] = stage;
  }
}

/// Returns true if `op`, or a row that is recomputed for it, needs packs one
/// after the other: scans, swaps, groups, and rows that are read element by
/// element into others.
bool LoopDistribution::takesPacksInOrder(Operation *op,
                                         llvm::DenseSet<Operation *> &seen) {
  auto reduce = dyn_cast<ReduceOp>(op);
  if (isa<ScanOp, SwapOp, BroadcastOp, LoadIntoOp>(op) ||
      (reduce && isRowTile(reduce.getType())))
    return true;
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    Operation *def = operand.getDefiningOp();
    return def && isRowTile(operand.getType()) && !isUniform(def) &&
           !buffers.contains(operand) && seen.insert(def).second &&
           takesPacksInOrder(def, seen);
  });
}

/// Returns how many packs of `tile` a lane processes in one iteration of the
/// loop of `ops`. Their loads are in flight together, and lanes exchange their
/// partials together.
int64_t LoopDistribution::countAtOnce(Type tile, ArrayRef<Operation *> ops) {
  llvm::DenseSet<Operation *> seen;
  bool isInOrder = llvm::any_of(
      ops, [&](Operation *op) { return takesPacksInOrder(op, seen); });
  return isInOrder ? 1 : countPacksAtOnce(kernel, getTileDim(tile));
}

/// Builds the position of pack `number` of the `atOnce` packs of the iteration
/// that starts at `base`.
WalkPosition LoopDistribution::buildPosition(OpBuilder &b, Location loc,
                                             Type tile, Value base,
                                             int64_t number, int64_t atOnce) {
  WalkPosition position;
  IndexBuilder x(b, loc);
  if (number > 0)
    base = x.add(base, x.constant(number * layout.walkStep(tile)));
  position.number = number;
  position.base = base;
  position.place = layout.positionAt(b, loc, tile, base, atOnce);
  position.local = base;
  if (layout.lane && !getTileDim(tile).isPerGroup())
    position.local = x.div(base, x.constant(layout.layout.getLanes()));
  return position;
}

/// Returns the pack of the row `tile` at `place`. If this loop has not computed
/// the pack, loads it from the row's buffer or recomputes it.
Value LoopDistribution::getPack(OpBuilder &b, Value tile,
                                const WalkPosition &place) {
  if (Value pack = packs.lookup({tile, place.number}))
    return pack;
  Location loc = tile.getLoc();
  Operation *op = tile.getDefiningOp();
  Value buffer = buffers.lookup(tile), pack;
  if (op && (isUniform(op) || !buffer))
    pack = buildOp(b, op, place);
  else
    pack = vector::LoadOp::create(b, loc, layout.packType(tile.getType()),
                                  buffer, ValueRange{place.local});
  return packs[{tile, place.number}] = pack;
}

/// Returns the number of the iteration of `atOnce` packs that starts at
/// position `base`.
Value LoopDistribution::getStep(OpBuilder &b, Location loc, Type tile,
                                Value base, int64_t atOnce) {
  IndexBuilder x(b, loc);
  return x.div(base, x.constant(atOnce * layout.walkStep(tile)));
}

/// Reduces the packs at `places`, those of one iteration, to one partial of
/// `reduce`. The order of extremes does not matter, so lanes exchange one of
/// all packs.
void LoopDistribution::buildPartial(OpBuilder &b, ReduceOp reduce,
                                    ArrayRef<WalkPosition> places) {
  Location loc = reduce.getLoc();
  WalkPartials &kept = partials.find(reduce)->second;
  SmallVector<Value> found;
  for (const WalkPosition &place : places) {
    Value pack = getPack(b, reduce.getSource(), place);
    if (kept.isElementwise())
      kept.meet(b, pack, place.place.exists);
    else
      found.push_back(reducePack(b, layout, reduce, pack, place.place.exists));
  }
  if (kept.isElementwise())
    return;
  if (reduce.getKind() != ReduceKind::add)
    found = {reduceTree(b, loc, reduce.getKind(), found)};
  reduceAcrossLanes(b, layout, reduce, found);
  Value step = getStep(b, loc, reduce.getSource().getType(),
                       places.front().base, places.size());
  kept.store(b, reduceTree(b, loc, reduce.getKind(), found), step);
}

/// Builds the pack at `place` of the result of `scan`.
Value LoopDistribution::buildScan(OpBuilder &b, ScanOp scan,
                                  const WalkPosition &place) {
  SmallVector<ScannedPack> scanned = {
      scanPack(b, layout, scan, getPack(b, scan.getSource(), place),
               place.place.exists)};
  scanAcrossLanes(b, layout, scan, scanned);
  return scanAcrossSteps(b, layout, scan, scanned.front(),
                         getStep(b, scan.getLoc(), scan.getType(), place.base),
                         lefts[scan]);
}

/// Builds the pack at `place` of the result of `swap`. Packs of other steps are
/// in a buffer that an earlier stage has written.
Value LoopDistribution::buildSwap(OpBuilder &b, SwapOp swap,
                                  const WalkPosition &place) {
  Operation *def = swap.getSource().getDefiningOp();
  if (!isFarSwap(swap))
    return swapInStep(b, layout, swap, getPack(b, swap.getSource(), place));
  if (def && isUniform(def))
    return getPack(b, swap.getSource(), place);
  Location loc = swap.getLoc();
  int64_t apart = swap.getBlock() / layout.layout.getLanes();
  Value other = arith::XOrIOp::create(b, loc, place.local,
                                      IndexBuilder(b, loc).constant(apart));
  return vector::LoadOp::create(b, loc, layout.packType(swap.getType()),
                                buffers.lookup(swap.getSource()),
                                ValueRange{other});
}

/// Builds the pack at `place` of the result of `op`. Its operand, a row with
/// one element per group, has a loop of its own, so it is in a buffer.
Value LoopDistribution::buildBroadcast(OpBuilder &b, BroadcastOp op,
                                       const WalkPosition &place) {
  Location loc = op.getLoc();
  Operation *def = op.getSource().getDefiningOp();
  if (def && isUniform(def))
    return broadcastElement(b, layout, op, getPack(b, op.getSource(), place));
  Type tile = op.getType();
  IndexBuilder x(b, loc);
  int64_t perElement =
      layout.walkStep(tile) * layout.packsOfGroup(getTileDim(tile));
  Value element = vector::LoadOp::create(
      b, loc, layout.packType(op.getSource().getType()),
      buffers.lookup(op.getSource()),
      ValueRange{x.div(place.base, x.constant(perElement))});
  return broadcastElement(b, layout, op, element);
}

/// Applies `op`, which is no reduction, to the pack at `place`. Returns null if
/// `op` has no result.
Value LoopDistribution::buildOp(OpBuilder &b, Operation *op,
                                const WalkPosition &place) {
  if (auto scan = dyn_cast<ScanOp>(op))
    return buildScan(b, scan, place);
  if (auto swap = dyn_cast<SwapOp>(op))
    return buildSwap(b, swap, place);
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return buildBroadcast(b, broadcast, place);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(isRowTile(operand.getType()) ? getPack(b, operand, place)
                                                    : operand);
  // Accesses to a buffer need no predicate: a buffer has space for all packs of
  // all iterations. Those that do not exist may hold anything.
  auto positionIn = [&](Value memref) -> PackPosition {
    if (!memref || getKernelArgument(memref))
      return place.place;
    return {place.local, Value(), Value()};
  };
  return doToPack(b, layout, op, operands, positionIn);
}

/// Completes the reduction `op` after the loop. A result with one element per
/// group stays in its buffer.
void LoopDistribution::finishReduction(OpBuilder &b, ReduceOp op) {
  Location loc = op.getLoc();
  Value buffer = partials.find(op)->second.finish(b);
  if (isRowTile(op.getType())) {
    buffers[op] = buffer;
    return;
  }
  Value zero = IndexBuilder(b, loc).constant(0);
  op.getResult().replaceAllUsesWith(
      memref::LoadOp::create(b, loc, buffer, ValueRange{zero}).getResult());
}

/// Returns true if `reduce` combines packs of this lane only, in any order.
bool LoopDistribution::isElementwise(ReduceOp reduce) const {
  bool isInOrder =
      reduce.getKind() == ReduceKind::add && isa<FloatType>(reduce.getType());
  return !layout.isGPU && !isInOrder && !isRowTile(reduce.getType()) &&
         layout.packOf(reduce.getSource().getType()) > 1;
}

/// Allocates the buffers of the reductions and scans among `ops`, which share a
/// loop.
void LoopDistribution::allocPartials(OpBuilder &b, ArrayRef<Operation *> ops,
                                     int64_t atOnce) {
  for (Operation *op : ops) {
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      Type row = reduce.getSource().getType();
      if (isElementwise(reduce)) {
        partials.try_emplace(op, b, kernel, reduce, layout.packType(row));
        continue;
      }
      int64_t packs = llvm::divideCeil(layout.packsOf(row), atOnce);
      int64_t results = isRowTile(reduce.getType())
                            ? packs / layout.packsOfGroup(getTileDim(row))
                            : 1;
      partials.try_emplace(op, kernel, reduce, packs, results);
    }
    if (auto scan = dyn_cast<ScanOp>(op))
      lefts[scan] =
          allocBuffer(kernel, getElementTypeOrSelf(scan.getType()),
                      std::max<int64_t>(1, countPackBits(layout, scan)));
  }
}

/// Returns true if `row`, computed in stage `stage`, is recomputed in later
/// stages.
bool LoopDistribution::isMadeAgain(Value row, int64_t stage) {
  auto isKept = [&](Value other) { return kept.contains(other); };
  return !getTileDim(row.getType()).isPerGroup() &&
         isTooLongToKeep(kernel, row.getType()) &&
         llvm::all_of(row.getUsers(), [&](Operation *user) {
           int64_t later = stages.lookup(user);
           if (isFarSwap(user))
             return false;
           return later <= stage ||
                  canRematerialize(kernel, stages, row, later, isKept);
         });
}

/// Collects the rows that need a buffer: results of reductions with one element
/// per group, and rows that later loops use and that are not recomputed.
void LoopDistribution::chooseKeptRows() {
  for (Operation &op : block.without_terminator()) {
    if (!isTileOp(&op) || isUniform(&op) || op.getNumResults() != 1 ||
        !isRowTile(op.getResult(0).getType()))
      continue;
    Value row = op.getResult(0);
    int64_t stage = stages.lookup(&op);
    bool outlives = llvm::any_of(row.getUsers(), [&](Operation *user) {
      return stages.lookup(user) > stage || isa<BroadcastOp>(user);
    });
    if (isa<ReduceOp>(op) || (outlives && !isMadeAgain(row, stage)))
      kept.insert(row);
  }
}

void LoopDistribution::plan() {
  assignStages();
  chooseKeptRows();
}

/// Returns the end of the walk over rows of type `tile`, or over one part of
/// them if the layout is in parts. If the launch decides the length of whole
/// rows, the walk ends with their last pack.
Value LoopDistribution::buildWalkEnd(OpBuilder &b, Location loc, Type tile) {
  DimAttr dim = getTileDim(tile);
  return dim.isBounded() && !layout.layout.isInParts()
             ? buildRowSize(b, loc, kernel, dim)
             : IndexBuilder(b, loc).constant(layout.walkEnd(tile));
}

/// For the reductions among `ops`, stores the neutral element as the partial of
/// each iteration from `end` to the row's bound.
void LoopDistribution::fillPartials(OpBuilder &b, ArrayRef<Operation *> ops,
                                    Type tile, Value end, int64_t atOnce) {
  SmallVector<ReduceOp> reductions;
  for (Operation *op : ops)
    if (auto reduce = dyn_cast<ReduceOp>(op); reduce && !isElementwise(reduce))
      reductions.push_back(reduce);
  if (!getTileDim(tile).isBounded() || reductions.empty())
    return;
  Location loc = ops.front()->getLoc();
  IndexBuilder x(b, loc);
  int64_t step = atOnce * layout.walkStep(tile);
  Value first = x.div(x.add(end, x.constant(step - 1)), x.constant(step));
  int64_t last = llvm::divideCeil(layout.packsOf(tile), atOnce);
  auto loop =
      scf::ForOp::create(b, loc, first, x.constant(last), x.constant(1));
  OpBuilder body(loop.getBody()->getTerminator());
  for (ReduceOp reduce : reductions) {
    Value neutral = arith::ConstantOp::create(
        body, loc,
        neutralOf(reduce.getKind(), getElementTypeOrSelf(reduce.getType())));
    partials.find(reduce)->second.store(body, neutral, loop.getInductionVar());
  }
}

/// Builds `ops`, one after the other, for the packs at `places`.
void LoopDistribution::buildOps(OpBuilder &b, ArrayRef<Operation *> ops,
                                ArrayRef<WalkPosition> places) {
  for (Operation *op : ops) {
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      buildPartial(b, reduce, places);
      continue;
    }
    bool isKept = op->getNumResults() == 1 && kept.contains(op->getResult(0));
    if (isKept)
      buffers[op->getResult(0)] = allocRow(kernel, op->getResult(0));
    for (const WalkPosition &place : places) {
      Value pack = buildOp(b, op, place);
      if (!pack)
        continue;
      Value row = op->getResult(0);
      packs[{row, place.number}] = pack;
      if (isKept)
        vector::StoreOp::create(b, op->getLoc(), pack, buffers[row],
                                ValueRange{place.local});
    }
  }
}

/// Builds the loop over the packs of rows with the length of `tile`. The loop
/// executes `ops`, which are in stage `stage`.
void LoopDistribution::buildLoop(int64_t stage, Type tile,
                                 ArrayRef<Operation *> ops) {
  OpBuilder b(block.getTerminator());
  Location loc = ops.front()->getLoc();
  IndexBuilder x(b, loc);
  int64_t atOnce = countAtOnce(tile, ops);
  allocPartials(b, ops, atOnce);
  LDBG() << kernel.getSymName() << ": stage " << stage << ", " << ops.size()
         << " ops on rows of " << getTileDim(tile).str();
  Value end = buildWalkEnd(b, loc, tile);
  auto loop = scf::ForOp::create(b, loc, x.constant(0), end,
                                 x.constant(atOnce * layout.walkStep(tile)));
  fillPartials(b, ops, tile, end, atOnce);
  OpBuilder body(loop.getBody()->getTerminator());
  SmallVector<WalkPosition> places;
  for (int64_t number = 0; number < atOnce; ++number)
    places.push_back(
        buildPosition(body, loc, tile, loop.getInductionVar(), number, atOnce));
  packs.clear();
  // Recompute rows before stores overwrite what they are loaded from.
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp();
          def && isRowTile(operand.getType()) && !isUniform(def) &&
          !buffers.contains(operand) && stages.lookup(def) < stage)
        for (const WalkPosition &place : places)
          getPack(body, operand, place);
  buildOps(body, ops, places);
  for (Operation *op : ops)
    if (auto reduce = dyn_cast<ReduceOp>(op))
      finishReduction(b, reduce);
}

void LoopDistribution::run() {
  SmallVector<Operation *> ops;
  int64_t last = 0;
  for (Operation &op : block.without_terminator()) {
    ops.push_back(&op);
    last = std::max(last, stages[&op]);
  }
  for (int64_t stage = 0; stage <= last; ++stage) {
    // Build a loop per dim. Rows of different dims share only scalars and
    // broadcast rows of one element per group, whose loops come first.
    llvm::MapVector<DimAttr, SmallVector<Operation *>> rows;
    for (Operation *op : ops) {
      if (stages[op] != stage)
        continue;
      if (!isTileOp(op))
        op->moveBefore(block.getTerminator());
      else if (!isUniform(op))
        rows[getTileDim(getTile(op))].push_back(op);
    }
    for (bool isPerGroup : {true, false})
      for (auto &[dim, list] : rows)
        if (dim.isPerGroup() == isPerGroup)
          buildLoop(stage, getTile(list.front()), list);
  }
  for (Operation *op : llvm::reverse(ops))
    if (isTileOp(op))
      op->erase();
}

/// Checks that rows, but uniform ones, are used in their own block only.
static LogicalResult verifyBlocks(KernelOp kernel) {
  WalkResult walk = kernel.walk([](Operation *op) -> WalkResult {
    bool isApart = llvm::all_of(op->getOperands(), [&](Value operand) {
      Operation *def = operand.getDefiningOp();
      return !isRowTile(operand.getType()) ||
             (def && (isUniform(def) || def->getBlock() == op->getBlock()));
    });
    bool carries = op->getNumRegions() > 0 && isTileOp(op);
    if (isApart && !carries)
      return WalkResult::advance();
    return op->emitError() << "expected long rows to be used where they are "
                              "made, got one from another block, which "
                              "mlafix-spill-rows has not seen";
  });
  return failure(walk.wasInterrupted());
}

/// Returns the blocks that contain rows, inner blocks first.
static SmallVector<Block *> getRowBlocks(KernelOp kernel) {
  llvm::SetVector<Block *> blocks;
  kernel.getBody().walk<WalkOrder::PostOrder>([&](Block *block) {
    if (llvm::any_of(*block, [](Operation &op) {
          return isTileOp(&op) && !isa<arith::ConstantOp>(op);
        }))
      blocks.insert(block);
  });
  return blocks.takeVector();
}

namespace {
class LoopOverPacksPass
    : public mlafix::impl::LoopOverPacksPassBase<LoopOverPacksPass> {
public:
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    if (failed(verifyPlanned(kernel)) || failed(verifyRowOps(kernel)))
      return signalPassFailure();
    if (!kernel.getPlanAttr().has(PlanField::RowLoops))
      return;
    if (failed(verifyBlocks(kernel)))
      return signalPassFailure();
    std::deque<LoopDistribution> blocks;
    for (Block *block : getRowBlocks(kernel))
      blocks.emplace_back(kernel, *block).plan();
    for (LoopDistribution &block : blocks)
      block.run();
    if (failed(verifyBuffers(kernel)))
      signalPassFailure();
  }
};
} // namespace
