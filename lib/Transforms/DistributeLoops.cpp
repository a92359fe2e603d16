//===- DistributeLoops.cpp - long rows become loops over packs -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/DistributeLoops.h"
#include "lib/Transforms/RowAccess.h"
#include "lib/Transforms/RowReduce.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlafix;

// A long row is walked in loops: one vector per pack would be tens of thousands
// of instructions. The ops of a row fall into stages with a reduction between
// two of them: the scalars of a stage come first, then one loop over the packs
// does all that the stage does to rows of one length. A row that a later stage
// needs is kept in a buffer on the stack, and so is one that passes through
// control flow (BufferRows.cpp), so that each block has rows of its own.

namespace {

/// One pack of the loop being built.
struct PackPlace {
  Value base;   // where the pack of the first lane begins in the row
  Value start;  // where this lane's does
  Value local;  // where it is in this lane's buffers
  Value exists; // null if it does in every lane
};

class LoopDistribution {
public:
  LoopDistribution(KernelOp kernel, const RowContext &context, Block &block)
      : kernel(kernel), layout{context, kernel.getGuardsAttr()}, block(block) {}

  void run();

private:
  void assignStages();
  void buildLoop(int64_t stage, Type tile, ArrayRef<Operation *> ops);
  PackPlace buildPlace(OpBuilder &b, Location loc, Type tile, Value base);
  Value getPack(OpBuilder &b, Value tile, const PackPlace &place);
  Value buildOp(OpBuilder &b, Operation *op, const PackPlace &place);
  Value finishReduction(OpBuilder &b, ReduceOp op);
  /// Elements of a row that one iteration does, in all lanes.
  int64_t stepOf(Type tile) const {
    return layout.context.layout.getLanes() * layout.packOf(tile);
  }

  KernelOp kernel;
  RowLayout layout;
  Block &block;
  llvm::DenseMap<Operation *, int64_t> stages;
  llvm::DenseMap<Value, Value> buffers;  // of rows that outlive their stage
  llvm::DenseMap<Value, Value> partials; // of reductions, one element per pack
  llvm::DenseMap<Value, Value> packs;    // of the loop being built
};
} // namespace

/// A row tile that `op` takes or gives: all of them are of one length.
static Type getTile(Operation *op) {
  for (Type type :
       llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
    if (isRowTile(type))
      return type;
  return {};
}

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

/// An op's stage is the first in which all it uses is there: a reduction's
/// result is from the next stage on. Scalars run before the rows of their
/// stage, so a scalar access that must follow a row's waits for the next stage
/// too.
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
          stage = std::max(stage,
                           stages[earlier] +
                               (isTileOp(earlier) && !isTileOp(&op) ? 1 : 0));
      accesses.push_back(&op);
    }
    stages[&op] = stage;
  }
}

PackPlace LoopDistribution::buildPlace(OpBuilder &b, Location loc, Type tile,
                                       Value base) {
  if (!layout.context.lane)
    return {base, base, base, Value()};
  IndexBuilder x(b, loc);
  PackPlace place;
  place.base = base;
  place.start =
      x.add(base, x.mul(layout.context.lane, x.constant(layout.packOf(tile))));
  place.local = x.div(base, x.constant(layout.context.layout.getLanes()));
  int64_t size = RowLayout::sizeOf(tile);
  if (size % stepOf(tile) != 0)
    place.exists = x.ult(place.start, x.constant(size));
  return place;
}

/// The pack of a row at `place`: of this loop, or of an earlier stage's buffer.
Value LoopDistribution::getPack(OpBuilder &b, Value tile,
                                const PackPlace &place) {
  if (Value pack = packs.lookup(tile))
    return pack;
  Location loc = tile.getLoc();
  VectorType type = layout.packType(tile.getType());
  Value pack;
  if (auto splat = tile.getDefiningOp<SplatOp>())
    pack = vector::BroadcastOp::create(b, loc, type, splat.getScalar());
  else if (auto constant = tile.getDefiningOp<arith::ConstantOp>())
    pack = splatPack(b, layout, constant);
  else
    pack = vector::LoadOp::create(b, loc, type, buffers.lookup(tile),
                                  ValueRange{place.local});
  packs[tile] = pack;
  return pack;
}

/// Where a pack of a row in `memref` is, and whether it is there (null:
/// always): a lane's own buffer holds its packs alone, and room for all.
static std::pair<Value, Value> getPlaceIn(Value memref,
                                          const PackPlace &place) {
  if (getKernelArgument(memref))
    return {place.start, place.exists};
  return {place.local, Value()};
}

/// Does one op to the pack at `place`; null where that has no result.
Value LoopDistribution::buildOp(OpBuilder &b, Operation *op,
                                const PackPlace &place) {
  Location loc = op->getLoc();
  if (auto load = dyn_cast<LoadOp>(op)) {
    Type element =
        cast<MemRefType>(load.getSource().getType()).getElementType();
    auto [start, exists] = getPlaceIn(load.getSource(), place);
    SmallVector<Value> indices(load.getIndices());
    indices.push_back(start);
    Value predicate =
        accessPredicate(b, loc, load.getPredicate(), load.getSource());
    Value pack =
        widen(b, load,
              readMemory(b, loc, layout, both(b, loc, predicate, exists),
                         layout.packType(load.getType(), element),
                         load.getSource(), indices));
    if (!load.getOther())
      return pack;
    Value other =
        vector::BroadcastOp::create(b, loc, pack.getType(), load.getOther());
    return arith::SelectOp::create(b, loc, load.getPredicate(), pack, other);
  }
  if (auto store = dyn_cast<StoreOp>(op)) {
    Value target = store.getTarget();
    Type element = cast<MemRefType>(target.getType()).getElementType();
    Value value = narrow(b, loc, getPack(b, store.getValue(), place), element);
    auto [start, exists] = getPlaceIn(target, place);
    SmallVector<Value> indices(store.getIndices());
    indices.push_back(start);
    Value predicate = accessPredicate(b, loc, store.getPredicate(), target);
    writeIf(b, loc, both(b, loc, predicate, exists), [&](OpBuilder &then) {
      vector::StoreOp::create(then, loc, value, target, indices,
                              layout.isStreamed(target),
                              llvm::MaybeAlign(layout.alignmentOf(target)));
    });
    return {};
  }
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    SmallVector<Value> partial = {
        reducePack(b, layout, reduce, getPack(b, reduce.getSource(), place),
                   place.exists)};
    reduceAcrossLanes(b, layout, reduce, partial);
    Value position = arith::DivUIOp::create(
        b, loc, place.base,
        arith::ConstantIndexOp::create(b, loc,
                                       stepOf(reduce.getSource().getType())));
    memref::StoreOp::create(b, loc, partial.front(), partials[reduce],
                            ValueRange{position});
    return {};
  }
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(isRowTile(operand.getType()) ? getPack(b, operand, place)
                                                    : operand);
  return applyToPack(b, layout, op, operands);
}

/// Neighbours meet until one is left; an odd one out moves on (the tree of
/// reduceTree, in place).
Value LoopDistribution::finishReduction(OpBuilder &b, ReduceOp op) {
  Location loc = op.getLoc();
  IndexBuilder x(b, loc);
  Value buffer = partials[op];
  Value zero = x.constant(0), one = x.constant(1), two = x.constant(2);
  for (int64_t count = layout.packsOf(op.getSource().getType()); count > 1;
       count = llvm::divideCeil(count, 2)) {
    auto loop = scf::ForOp::create(b, loc, zero, x.constant(count / 2), one);
    OpBuilder body(loop.getBody()->getTerminator());
    IndexBuilder y(body, loc);
    Value left = y.mul(loop.getInductionVar(), two);
    Value first = memref::LoadOp::create(body, loc, buffer, ValueRange{left});
    Value second =
        memref::LoadOp::create(body, loc, buffer, ValueRange{y.add(left, one)});
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
  return memref::LoadOp::create(b, loc, buffer, ValueRange{zero});
}

/// The loop over the packs of rows of the length of `tile`.
void LoopDistribution::buildLoop(int64_t stage, Type tile,
                                 ArrayRef<Operation *> ops) {
  OpBuilder b(block.getTerminator());
  Location loc = ops.front()->getLoc();
  IndexBuilder x(b, loc);
  for (Operation *op : ops)
    if (auto reduce = dyn_cast<ReduceOp>(op))
      partials[reduce] =
          allocBuffer(kernel, reduce.getType(), layout.packsOf(tile));
  auto loop = scf::ForOp::create(b, loc, x.constant(0),
                                 x.constant(RowLayout::sizeOf(tile)),
                                 x.constant(stepOf(tile)));
  OpBuilder body(loop.getBody()->getTerminator());
  PackPlace place = buildPlace(body, loc, tile, loop.getInductionVar());
  packs.clear();
  for (Operation *op : ops) {
    Value pack = buildOp(body, op, place);
    if (!pack)
      continue;
    Value row = op->getResult(0);
    packs[row] = pack;
    bool outlives = llvm::any_of(row.getUsers(), [&](Operation *user) {
      return stages.lookup(user) > stage;
    });
    if (outlives) {
      buffers[row] = allocRow(kernel, row.getType());
      vector::StoreOp::create(body, loc, pack, buffers[row],
                              ValueRange{place.local});
    }
  }
  if (!layout.context.isGPU)
    unswitchLoop(loop);
  for (Operation *op : ops)
    if (auto reduce = dyn_cast<ReduceOp>(op))
      reduce.getResult().replaceAllUsesWith(finishReduction(b, reduce));
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
    // By length: rows of different ones have nothing in common but scalars.
    llvm::MapVector<int64_t, SmallVector<Operation *>> rows;
    for (Operation *op : ops) {
      if (stages[op] != stage)
        continue;
      if (!isTileOp(op))
        op->moveBefore(block.getTerminator());
      else if (!isUniform(op))
        rows[RowLayout::sizeOf(getTile(op))].push_back(op);
    }
    for (auto &[size, list] : rows)
      buildLoop(stage, getTile(list.front()), list);
  }
  for (Operation *op : llvm::reverse(ops))
    if (isTileOp(op))
      op->erase();
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

/// Instructions, more or less, of a thread that does `op`, on rows, to all of
/// its packs: an element each, and what a reduction takes across lanes and
/// warps (RowReduce.cpp).
static int64_t countInstructions(Operation *op, LayoutAttr layout) {
  int64_t size = RowLayout::sizeOf(getTile(op));
  int64_t perPack = layout.packFor(size);
  if (isa<ReduceOp>(op))
    perPack += llvm::Log2_64(std::min<int64_t>(layout.getLanes(), 32)) +
               layout.getLanes() / 32;
  return layout.packsFor(size) * perPack;
}

/// Whether to walk the rows of `kernel` in loops.
static bool wantsLoops(KernelOp kernel, const RowContext &context) {
  int64_t packs = 0, instructions = 0;
  bool isStructured = true; // rows that scf.while carries stay unrolled
  kernel.walk([&](Operation *op) {
    if (!isTileOp(op))
      return;
    isStructured &= !isa<scf::WhileOp, scf::ConditionOp>(op);
    packs = std::max(packs,
                     context.layout.packsFor(RowLayout::sizeOf(getTile(op))));
    instructions += countInstructions(op, context.layout);
  });
  if (!context.isGPU)
    return isStructured && packs > getMachine(kernel).loopPacks;
  return isStructured && packs > 1 &&
         instructions > getMachine(kernel).unrolledInstructions;
}

void mlafix::distributeRowsInLoops(KernelOp kernel, const RowContext &context) {
  if (!wantsLoops(kernel, context))
    return;
  bufferRows(kernel);
  for (Block *block : getRowBlocks(kernel))
    LoopDistribution(kernel, context, *block).run();
}
