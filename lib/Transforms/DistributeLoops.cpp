//===- DistributeLoops.cpp - long rows become loops over packs -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/DistributeLoops.h"
#include "lib/Transforms/RowAccess.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlafix;

// On a CPU a long row is walked in loops: one vector per pack would be tens of
// thousands of instructions. The ops of a row fall into stages with a reduction
// between two of them: the scalars of a stage come first, then one loop over
// the packs does all that the stage does to rows. A row that a later stage
// needs is kept in a buffer on the stack, and so is one that passes through
// control flow (BufferRows.cpp), so that each block has rows of its own.

namespace {

/// Rows of more packs than these are walked in loops: what is done to one pack
/// at a time fits the registers.
constexpr int64_t kUnrolledPacks = 1;

class LoopDistribution {
public:
  LoopDistribution(KernelOp kernel, const RowContext &context, Block &block,
                   int64_t size)
      : kernel(kernel), layout{context, kernel.getGuardsAttr()}, block(block),
        size(size) {}

  void run();

private:
  void assignStages();
  void buildLoop(int64_t stage, ArrayRef<Operation *> ops);
  Value getPack(OpBuilder &b, Value tile, Value start);
  Value buildOp(OpBuilder &b, Operation *op, Value start);
  Value finishReduction(OpBuilder &b, ReduceOp op);

  KernelOp kernel;
  RowLayout layout;
  Block &block;
  int64_t size;
  llvm::DenseMap<Operation *, int64_t> stages;
  llvm::DenseMap<Value, Value> buffers;  // of rows that outlive their stage
  llvm::DenseMap<Value, Value> partials; // of reductions, one element per pack
  llvm::DenseMap<Value, Value> packs;    // of the loop being built
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

/// Whether swapping two ops could change what memory holds or what is read.
static bool isOrdered(Operation *a, Operation *b) {
  auto writes = [](Operation *op) {
    return !isMemoryEffectFree(op) && !isa<LoadOp>(op);
  };
  return !isMemoryEffectFree(a) && !isMemoryEffectFree(b) &&
         (writes(a) || writes(b));
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
        if (isOrdered(earlier, &op))
          stage = std::max(stage,
                           stages[earlier] +
                               (isTileOp(earlier) && !isTileOp(&op) ? 1 : 0));
      accesses.push_back(&op);
    }
    stages[&op] = stage;
  }
}

/// The pack of a row that begins at `start`: of this loop, or of an earlier
/// stage's buffer.
Value LoopDistribution::getPack(OpBuilder &b, Value tile, Value start) {
  if (Value pack = packs.lookup(tile))
    return pack;
  Location loc = tile.getLoc();
  VectorType type = layout.packType(getElementTypeOrSelf(tile.getType()));
  Value pack;
  if (auto splat = tile.getDefiningOp<SplatOp>())
    pack = vector::BroadcastOp::create(b, loc, type, splat.getScalar());
  else if (auto constant = tile.getDefiningOp<arith::ConstantOp>())
    pack = splatPack(b, layout, constant);
  else
    pack = vector::LoadOp::create(b, loc, type, buffers.lookup(tile),
                                  ValueRange{start});
  packs[tile] = pack;
  return pack;
}

/// Does one op to the pack at `start`; null where that has no result.
Value LoopDistribution::buildOp(OpBuilder &b, Operation *op, Value start) {
  Location loc = op->getLoc();
  if (auto load = dyn_cast<LoadOp>(op)) {
    Type element =
        cast<MemRefType>(load.getSource().getType()).getElementType();
    SmallVector<Value> indices(load.getIndices());
    indices.push_back(start);
    Value predicate =
        accessPredicate(b, loc, load.getPredicate(), load.getSource());
    Value pack =
        widen(b, load,
              readMemory(b, loc, layout, predicate, layout.packType(element),
                         load.getSource(), indices));
    if (!load.getOther())
      return pack;
    Value other =
        vector::BroadcastOp::create(b, loc, pack.getType(), load.getOther());
    return arith::SelectOp::create(b, loc, load.getPredicate(), pack, other);
  }
  if (auto store = dyn_cast<StoreOp>(op)) {
    Type element =
        cast<MemRefType>(store.getTarget().getType()).getElementType();
    Value value = narrow(b, loc, getPack(b, store.getValue(), start), element);
    SmallVector<Value> indices(store.getIndices());
    indices.push_back(start);
    writeIf(b, loc,
            accessPredicate(b, loc, store.getPredicate(), store.getTarget()),
            [&](OpBuilder &then) {
              vector::StoreOp::create(
                  then, loc, value, store.getTarget(), indices,
                  layout.isStreamed(store.getTarget()),
                  llvm::MaybeAlign(layout.alignmentOf(store.getTarget())));
            });
    return {};
  }
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    Value pack = getPack(b, reduce.getSource(), start);
    SmallVector<Value> elements;
    for (int64_t i = 0; i < layout.pack(); ++i)
      elements.push_back(vector::ExtractOp::create(b, loc, pack, i));
    Value partial = reduceTree(b, loc, reduce.getKind(), elements);
    Value position = arith::DivUIOp::create(
        b, loc, start, arith::ConstantIndexOp::create(b, loc, layout.pack()));
    memref::StoreOp::create(b, loc, partial, partials[reduce],
                            ValueRange{position});
    return {};
  }
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(isRowTile(operand.getType()) ? getPack(b, operand, start)
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
  for (int64_t count = size / layout.pack(); count > 1;
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

void LoopDistribution::buildLoop(int64_t stage, ArrayRef<Operation *> ops) {
  OpBuilder b(block.getTerminator());
  Location loc = ops.front()->getLoc();
  IndexBuilder x(b, loc);
  for (Operation *op : ops)
    if (auto reduce = dyn_cast<ReduceOp>(op))
      partials[reduce] =
          allocBuffer(kernel, reduce.getType(), size / layout.pack());
  auto loop = scf::ForOp::create(b, loc, x.constant(0), x.constant(size),
                                 x.constant(layout.pack()));
  OpBuilder body(loop.getBody()->getTerminator());
  packs.clear();
  for (Operation *op : ops) {
    Value pack = buildOp(body, op, loop.getInductionVar());
    if (!pack)
      continue;
    Value tile = op->getResult(0);
    packs[tile] = pack;
    bool outlives = llvm::any_of(tile.getUsers(), [&](Operation *user) {
      return stages.lookup(user) > stage;
    });
    if (outlives) {
      buffers[tile] =
          allocBuffer(kernel, getElementTypeOrSelf(tile.getType()), size);
      vector::StoreOp::create(body, loc, pack, buffers[tile],
                              ValueRange{loop.getInductionVar()});
    }
  }
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
    SmallVector<Operation *> rows;
    for (Operation *op : ops) {
      if (stages[op] != stage)
        continue;
      if (!isTileOp(op))
        op->moveBefore(block.getTerminator());
      else if (!isUniform(op))
        rows.push_back(op);
    }
    if (!rows.empty())
      buildLoop(stage, rows);
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

void mlafix::distributeRowsInLoops(KernelOp kernel, const RowContext &context) {
  int64_t size = 0;
  bool fits = !context.isGPU;
  kernel.walk([&](Operation *op) {
    if (!isTileOp(op))
      return;
    for (Type type :
         llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
      if (isRowTile(type)) {
        int64_t mine = getTileDim(type).getSize();
        fits &= !size || size == mine;
        size = mine;
      }
    // Rows that scf.while carries keep to the unrolled form.
    fits &= !isa<scf::WhileOp, scf::ConditionOp>(op);
  });
  if (!fits || size / context.layout.getPack() <= kUnrolledPacks)
    return;
  bufferRows(kernel);
  for (Block *block : getRowBlocks(kernel))
    LoopDistribution(kernel, context, *block, size).run();
}
