//===- LoopOverPacks.cpp - long rows become loops over packs --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GridBody.h"
#include "lib/Transforms/LaneConflicts.h"
#include "lib/Transforms/LongRows.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/RepeatRows.h"
#include "lib/Transforms/RowAccess.h"
#include "lib/Transforms/RowBuffers.h"
#include "lib/Transforms/RowReduce.h"
#include "lib/Transforms/RowScan.h"
#include "lib/Transforms/ThreadOps.h"
#include "lib/Transforms/WalkPartials.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-loop-over-packs"

namespace mlafix {
#define GEN_PASS_DEF_LOOPOVERPACKSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

// A long row is walked in loops: one vector per pack would be tens of thousands
// of instructions. The ops of a row fall into stages with a reduction between
// two of them: the scalars of a stage come first, then one loop over the packs
// does all that the stage does to rows of one length. A row that a later stage
// needs is kept in a buffer on the stack, or made again if it is too long for
// that (RepeatRows.h). One that passes through control flow is kept
// (BufferRows.cpp), so that each block has rows of its own.

namespace {

/// The pack of one iteration of the loop being built.
struct PackPosition {
  Value base;      // of the walk over the packs of all lanes
  PackPlace place; // of this lane's pack
  Value local;     // where it is in this lane's buffers
};

class LoopDistribution {
public:
  LoopDistribution(KernelOp kernel, Block &block)
      : kernel(kernel), layout(kernel), block(block) {}

  void run();

private:
  void assignStages();
  void buildLoop(int64_t stage, Type tile, ArrayRef<Operation *> ops);
  PackPosition buildPosition(OpBuilder &b, Location loc, Type tile, Value base);
  Value getPack(OpBuilder &b, Value tile, const PackPosition &place);
  void buildPartial(OpBuilder &b, ReduceOp reduce, const PackPosition &place);
  Value buildScan(OpBuilder &b, ScanOp scan, const PackPosition &place);
  Value getStep(OpBuilder &b, Location loc, Type tile, Value base);
  Value buildOp(OpBuilder &b, Operation *op, const PackPosition &place);
  Value buildBroadcast(OpBuilder &b, BroadcastOp op, const PackPosition &place);
  void allocPartials(ArrayRef<Operation *> ops);
  void finishReduction(OpBuilder &b, ReduceOp op);
  bool isMadeAgain(Value row, int64_t stage);
  bool mustPrecede(Operation *earlier, Operation *later);

  KernelOp kernel;
  RowLayout layout;
  Block &block;
  Stages stages;
  llvm::DenseMap<Value, Value> buffers; // of rows that outlive their stage
  llvm::DenseMap<Value, Value> lefts;   // of scans, what a walk has seen
  llvm::DenseMap<Value, Value> packs;   // of the loop being built
  llvm::DenseMap<Operation *, WalkPartials> partials; // of reductions
};
} // namespace

/// The ops of `block` whose values `op` or an op inside it uses.
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

/// Whether `later`, an access that must follow `earlier`, would come before it
/// in one stage: scalars run before rows, and rows along one dim before those
/// along another.
bool LoopDistribution::mustPrecede(Operation *earlier, Operation *later) {
  if (!isTileOp(earlier) || !isTileOp(later))
    return isTileOp(earlier);
  std::optional<MemoryAccess> a = getSingleAccess(earlier),
                              b = getSingleAccess(later);
  if (!a || !b || !a->getArgument() || !b->getArgument())
    return false; // a buffer has rows along one dim
  return (a->getRowDim() != b->getRowDim() || !a->isPartAs(*b)) &&
         mayConflict(kernel, *a, *b);
}

/// An op's stage is the first in which all it uses is there: a reduction's
/// result is from the next stage on.
void LoopDistribution::assignStages() {
  SmallVector<Operation *> accesses;
  for (Operation &op : block.without_terminator()) {
    int64_t stage = 0;
    for (Operation *producer : getProducers(&op, block))
      stage =
          std::max(stage, stages[producer] + (isa<ReduceOp>(producer) ? 1 : 0));
    if (!isMemoryEffectFree(&op)) {
      for (Operation *earlier : accesses)
        if (areOrdered(earlier, &op))
          stage = std::max(stage, stages[earlier] +
                                      (mustPrecede(earlier, &op) ? 1 : 0));
      accesses.push_back(&op);
    }
    stages[&op] = stage;
  }
}

PackPosition LoopDistribution::buildPosition(OpBuilder &b, Location loc,
                                             Type tile, Value base) {
  PackPosition position;
  position.base = base;
  position.place = layout.placeAt(b, loc, tile, base);
  position.local = base;
  IndexBuilder x(b, loc);
  if (layout.lane && !getTileDim(tile).isPerGroup())
    position.local = x.div(base, x.constant(layout.layout.getLanes()));
  return position;
}

/// The pack of a row at position `place`: of this loop, of an earlier stage's
/// buffer, or made again.
Value LoopDistribution::getPack(OpBuilder &b, Value tile,
                                const PackPosition &place) {
  if (Value pack = packs.lookup(tile))
    return pack;
  Location loc = tile.getLoc();
  Operation *op = tile.getDefiningOp();
  Value buffer = buffers.lookup(tile);
  if (op && (isUniform(op) || !buffer))
    return packs[tile] = buildOp(b, op, place);
  return packs[tile] =
             vector::LoadOp::create(b, loc, layout.packType(tile.getType()),
                                    buffer, ValueRange{place.local});
}

/// The number of the walk's step that is at `base`.
Value LoopDistribution::getStep(OpBuilder &b, Location loc, Type tile,
                                Value base) {
  return IndexBuilder(b, loc).div(
      base, arith::ConstantIndexOp::create(b, loc, layout.walkStep(tile)));
}

/// Leaves what `reduce` makes of the pack at `place` among its partials.
void LoopDistribution::buildPartial(OpBuilder &b, ReduceOp reduce,
                                    const PackPosition &place) {
  Location loc = reduce.getLoc();
  SmallVector<Value> partial = {
      reducePack(b, layout, reduce, getPack(b, reduce.getSource(), place),
                 place.place.exists)};
  reduceAcrossLanes(b, layout, reduce, partial);
  partials.find(reduce)->second.store(
      b, partial.front(),
      getStep(b, loc, reduce.getSource().getType(), place.base));
}

/// The pack at `place` of what `scan` makes, of all packs up to it.
Value LoopDistribution::buildScan(OpBuilder &b, ScanOp scan,
                                  const PackPosition &place) {
  SmallVector<ScannedPack> scanned = {
      scanPack(b, layout, scan, getPack(b, scan.getSource(), place),
               place.place.exists)};
  scanAcrossLanes(b, layout, scan, scanned);
  return scanAcrossSteps(b, layout, scan, scanned.front(),
                         getStep(b, scan.getLoc(), scan.getType(), place.base),
                         lefts[scan]);
}

/// A row of one element a group is in a buffer: its loop is another one.
Value LoopDistribution::buildBroadcast(OpBuilder &b, BroadcastOp op,
                                       const PackPosition &place) {
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

/// Does one op to the pack at `place`; null where that has no result.
Value LoopDistribution::buildOp(OpBuilder &b, Operation *op,
                                const PackPosition &place) {
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    buildPartial(b, reduce, place);
    return {};
  }
  if (auto scan = dyn_cast<ScanOp>(op))
    return buildScan(b, scan, place);
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return buildBroadcast(b, broadcast, place);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(isRowTile(operand.getType()) ? getPack(b, operand, place)
                                                    : operand);
  // A buffer has room for the packs that a lane does not have.
  auto placeIn = [&](Value memref) -> PackPlace {
    if (!memref || getKernelArgument(memref))
      return place.place;
    return {place.local, Value(), Value()};
  };
  return doToPack(b, layout, op, operands, placeIn);
}

/// A row of one element a group stays in the buffer that it is in.
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

/// Gives the reductions and scans among `ops`, of one loop, their buffers.
void LoopDistribution::allocPartials(ArrayRef<Operation *> ops) {
  for (Operation *op : ops) {
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      Type row = reduce.getSource().getType();
      int64_t packs = layout.packsOf(row);
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

/// Whether `row`, of stage `stage`, is made again where later stages need it.
bool LoopDistribution::isMadeAgain(Value row, int64_t stage) {
  auto isKept = [&](Value other) { return buffers.contains(other); };
  return !getTileDim(row.getType()).isPerGroup() &&
         isTooLongToKeep(kernel, row.getType()) &&
         llvm::all_of(row.getUsers(), [&](Operation *user) {
           int64_t later = stages.lookup(user);
           return later <= stage ||
                  canRepeat(kernel, stages, row, later, isKept);
         });
}

/// The loop over the packs of rows of the length of `tile`.
void LoopDistribution::buildLoop(int64_t stage, Type tile,
                                 ArrayRef<Operation *> ops) {
  OpBuilder b(block.getTerminator());
  Location loc = ops.front()->getLoc();
  IndexBuilder x(b, loc);
  allocPartials(ops);
  LDBG() << kernel.getSymName() << ": stage " << stage << ", " << ops.size()
         << " ops on rows of " << getTileDim(tile).str();
  auto loop = scf::ForOp::create(b, loc, x.constant(0),
                                 x.constant(layout.walkEnd(tile)),
                                 x.constant(layout.walkStep(tile)));
  OpBuilder body(loop.getBody()->getTerminator());
  PackPosition place = buildPosition(body, loc, tile, loop.getInductionVar());
  packs.clear();
  // What is made again comes before what this stage stores.
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp();
          def && isRowTile(operand.getType()) && !isUniform(def) &&
          !buffers.contains(operand) && stages.lookup(def) < stage)
        getPack(body, operand, place);
  for (Operation *op : ops) {
    Value pack = buildOp(body, op, place);
    if (!pack)
      continue;
    Value row = op->getResult(0);
    packs[row] = pack;
    bool outlives = llvm::any_of(row.getUsers(), [&](Operation *user) {
      return stages.lookup(user) > stage || isa<BroadcastOp>(user);
    });
    if (outlives && !isMadeAgain(row, stage)) {
      buffers[row] = allocRow(kernel, row);
      vector::StoreOp::create(body, loc, pack, buffers[row],
                              ValueRange{place.local});
    }
  }
  for (Operation *op : ops)
    if (auto reduce = dyn_cast<ReduceOp>(op))
      finishReduction(b, reduce);
}

void LoopDistribution::run() {
  assignStages();
  SmallVector<Operation *> ops;
  int64_t last = 0;
  for (Operation &op : block.without_terminator()) {
    ops.push_back(&op);
    last = std::max(last, stages[&op]);
  }
  for (int64_t stage = 0; stage <= last; ++stage) {
    // By dim: rows along different ones have nothing in common but scalars, and
    // rows of one element a group, which others are broadcast from.
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

/// Checks that every row is used in the block that makes it.
static LogicalResult verifyBlocks(KernelOp kernel) {
  WalkResult walk = kernel.walk([](Operation *op) {
    bool isApart = llvm::all_of(op->getOperands(), [&](Value operand) {
      Operation *def = operand.getDefiningOp();
      return !isRowTile(operand.getType()) ||
             (def && (isUniform(def) || def->getBlock() == op->getBlock()));
    });
    bool carries = op->getNumRegions() > 0 && isTileOp(op);
    if (isApart && !carries)
      return WalkResult::advance();
    op->emitError() << "expected long rows to be used where they are made, got "
                       "one from another block, which mlafix-buffer-rows has "
                       "not seen";
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

/// The blocks that hold rows, inner ones first.
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
    if (!walksRows(kernel))
      return;
    if (failed(verifyBlocks(kernel)))
      return signalPassFailure();
    for (Block *block : getRowBlocks(kernel))
      LoopDistribution(kernel, *block).run();
    if (failed(verifyBuffers(kernel)))
      signalPassFailure();
  }
};
} // namespace
