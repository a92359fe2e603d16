//===- SpillRows.cpp - put rows that cross control flow into buffers ------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/MlafixThread.h"
#include "dialect/Plan.h"
#include "lib/Transforms/GridLowering.h"
#include "lib/Transforms/Layout/LongRows.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Rows/RowAccess.h"
#include "lib/Transforms/Rows/StackRows.h"
#include "lib/Transforms/States/MergeStates.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-spill-rows"

namespace mlafix {
#define GEN_PASS_DEF_SPILLROWSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

// mlafix-loop-over-packs gives each block of the IR loops over packs of its
// own, which cannot use a row of another block. So a row that is carried by a
// loop, yielded by a branch, or used in a nested block is put into a stack
// buffer. The row is stored where it is computed and loaded where it is used.

static void storeRow(OpBuilder &b, Value tile, Value buffer) {
  StoreOp::create(b, tile.getLoc(), tile, buffer, ValueRange(), Value());
}

static Value loadRow(OpBuilder &b, Type tile, Value buffer) {
  return LoadOp::create(b, buffer.getLoc(), tile, buffer, ValueRange(), Value(),
                        Value());
}

/// Stores the row operands of the block's terminator to `buffers`. Keeps the
/// other operands, whose buffers are null.
static void storeYielded(Block &block, ArrayRef<Value> buffers) {
  Operation *yield = block.getTerminator();
  OpBuilder b(yield);
  SmallVector<Value> kept;
  for (auto [operand, buffer] : llvm::zip(yield->getOperands(), buffers)) {
    if (buffer)
      storeRow(b, operand, buffer);
    else
      kept.push_back(operand);
  }
  yield->setOperands(kept);
}

/// Replaces the results of `op` by the results of `replacement`. Rows are
/// loaded from `buffers` after `replacement`; results with a null buffer are no
/// rows.
static void replaceResults(Operation *op, Operation *replacement,
                           ArrayRef<Value> buffers) {
  OpBuilder b(op->getContext());
  b.setInsertionPointAfter(replacement);
  unsigned next = 0;
  for (auto [result, buffer] : llvm::zip(op->getResults(), buffers))
    result.replaceAllUsesWith(buffer ? loadRow(b, result.getType(), buffer)
                                     : replacement->getResult(next++));
  op->erase();
}

static void bufferLoop(KernelOp kernel, scf::ForOp loop) {
  OpBuilder b(loop);
  SmallVector<Value> buffers, inits;
  for (Value init : loop.getInitArgs()) {
    bool isRow = isRowTile(init.getType());
    buffers.push_back(isRow ? allocRow(kernel, init) : Value());
    if (isRow)
      storeRow(b, init, buffers.back());
    else
      inits.push_back(init);
  }
  storeYielded(*loop.getBody(), buffers);
  auto replacement =
      scf::ForOp::create(b, loop.getLoc(), loop.getLowerBound(),
                         loop.getUpperBound(), loop.getStep(), inits);
  Block &from = *loop.getBody(), &to = *replacement.getBody();
  if (!to.empty())
    to.back().erase();
  b.setInsertionPointToStart(&to);
  from.getArgument(0).replaceAllUsesWith(replacement.getInductionVar());
  unsigned next = 0;
  for (auto [argument, buffer] : llvm::zip(loop.getRegionIterArgs(), buffers))
    argument.replaceAllUsesWith(buffer ? loadRow(b, argument.getType(), buffer)
                                       : replacement.getRegionIterArg(next++));
  to.getOperations().splice(to.end(), from.getOperations());
  replaceResults(loop, replacement, buffers);
}

static void bufferBranch(KernelOp kernel, scf::IfOp branch) {
  OpBuilder b(branch);
  SmallVector<Value> buffers;
  SmallVector<Type> kept;
  for (Value result : branch.getResults()) {
    bool isRow = isRowTile(result.getType());
    buffers.push_back(isRow ? allocRow(kernel, result) : Value());
    if (!isRow)
      kept.push_back(result.getType());
  }
  for (Region *region : branch.getRegions())
    storeYielded(region->front(), buffers);
  auto replacement =
      scf::IfOp::create(b, branch.getLoc(), kept, branch.getCondition());
  replacement.getThenRegion().takeBody(branch.getThenRegion());
  replacement.getElseRegion().takeBody(branch.getElseRegion());
  replaceResults(branch, replacement, buffers);
}

/// If nested blocks use the row that `op` computes, stores the row to a buffer
/// right after `op`. Loads the row from the buffer before each use in a nested
/// block.
static void bufferNestedUses(KernelOp kernel, Operation *op) {
  Value tile = op->getResult(0);
  Value buffer;
  for (OpOperand &use : llvm::make_early_inc_range(tile.getUses())) {
    Operation *user = use.getOwner();
    if (user->getBlock() == op->getBlock())
      continue;
    if (!buffer) {
      buffer = allocRow(kernel, tile);
      OpBuilder b(op->getContext());
      b.setInsertionPointAfter(op);
      storeRow(b, tile, buffer);
    }
    OpBuilder b(user);
    use.set(loadRow(b, tile.getType(), buffer));
  }
}

/// Lowers merge loops that carry rows to scf.for, since bufferLoop() can put
/// the rows of an scf.for into buffers.
static void lowerMergeLoops(KernelOp kernel) {
  SmallVector<MergeLoopOp> loops;
  kernel.walk([&](MergeLoopOp loop) {
    if (isTileOp(loop))
      loops.push_back(loop);
  });
  IRRewriter rewriter(kernel.getContext());
  for (MergeLoopOp loop : loops)
    lowerToFor(rewriter, loop);
}

static void bufferRows(KernelOp kernel) {
  lowerMergeLoops(kernel);
  SmallVector<Operation *> carriers;
  kernel.walk([&](Operation *op) {
    if (isa<scf::ForOp, scf::IfOp>(op) && isTileOp(op))
      carriers.push_back(op);
  });
  LDBG() << kernel.getSymName() << ": rows pass through " << carriers.size()
         << " loops and branches";
  for (Operation *op : carriers) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      bufferLoop(kernel, loop);
    else
      bufferBranch(kernel, cast<scf::IfOp>(op));
  }
  SmallVector<Operation *> rows;
  kernel.walk([&](Operation *op) {
    if (op->getNumResults() == 1 && isRowTile(op->getResult(0).getType()) &&
        !isUniform(op))
      rows.push_back(op);
  });
  for (Operation *op : rows)
    bufferNestedUses(kernel, op);
}

namespace {
class SpillRowsPass : public mlafix::impl::SpillRowsPassBase<SpillRowsPass> {
public:
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    if (failed(verifyPlanned(kernel)) || failed(verifyRowOps(kernel)))
      return signalPassFailure();
    if (kernel.getPlanAttr().has(PlanField::RowLoops))
      bufferRows(kernel);
  }
};
} // namespace
