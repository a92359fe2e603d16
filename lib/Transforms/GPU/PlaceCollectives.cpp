//===- PlaceCollectives.cpp - ranks wait for each other -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/RowProgram.h"
#include "lib/Transforms/GPU/GatherSends.h"
#include "lib/Transforms/GridBody.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Target.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-place-collectives"

namespace mlafix {
#define GEN_PASS_DEF_PLACECOLLECTIVESPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

namespace {
class PlaceCollectivesPass
    : public mlafix::impl::PlaceCollectivesPassBase<PlaceCollectivesPass> {
public:
  void runOnOperation() override;
};
} // namespace

/// What `op` of the kernel's top level holds the row's program, or is it.
static Operation *findProgram(KernelOp kernel) {
  for (Operation &op : kernel.getBody().front())
    if (op.walk([](RowOp) { return WalkResult::interrupt(); }).wasInterrupted())
      return &op;
  return nullptr;
}

static ExchangeOp findExchange(Operation *program) {
  ExchangeOp found;
  program->walk([&](ExchangeOp op) { found = op; });
  return found;
}

/// NaN, or all bits of an integer.
static Value buildMark(OpBuilder &b, Location loc, Type type) {
  Type element = getElementTypeOrSelf(type);
  auto real = dyn_cast<FloatType>(element);
  TypedAttr mark = real ? TypedAttr(b.getFloatAttr(
                              real, APFloat::getQNaN(real.getFloatSemantics())))
                        : TypedAttr(b.getIntegerAttr(element, -1));
  Value scalar = arith::ConstantOp::create(b, loc, mark);
  return type == element ? scalar
                         : Value(SplatOp::create(b, loc, type, scalar));
}

/// Has `program` not read the peers' memory: a mark takes the place of each
/// element, and of the result of a merge loop over them, whose chunks would
/// take shared memory of their own.
static void markPeers(KernelOp kernel, Operation *program) {
  SetVector<Operation *> marked;
  program->walk([&](LoadOp load) {
    BlockArgument argument = getKernelArgument(load.getSource());
    if (!argument || !kernel.isArgPeers(argument.getArgNumber()))
      return;
    auto loop = load->getParentOfType<MergeLoopOp>();
    marked.insert(loop ? loop.getOperation() : load.getOperation());
  });
  for (Operation *op : marked) {
    OpBuilder b(op);
    for (Value result : op->getResults())
      result.replaceAllUsesWith(buildMark(b, op->getLoc(), result.getType()));
    op->erase();
  }
}

/// Leaves of `program` what comes before its exchange, with stores where
/// `sends` holds. Loads do not wait for it.
static void keepSends(Operation *program, Value sends) {
  ExchangeOp exchange = findExchange(program);
  SmallVector<Operation *> behind;
  for (Operation *op = exchange; op && !op->hasTrait<OpTrait::IsTerminator>();
       op = op->getNextNode())
    behind.push_back(op);
  for (Operation *op : llvm::reverse(behind))
    op->erase();
  program->walk([&](StoreOp store) {
    OpBuilder b(store);
    Value where = store.getPredicate();
    if (where)
      where = arith::AndIOp::create(b, store.getLoc(), where, sends);
    store.getPredicateMutable().assign(where ? where : sends);
  });
}

/// Leaves of `program` what comes behind its exchange, and what that needs: no
/// stores to the peers.
static void keepMerge(Operation *program) {
  ExchangeOp exchange = findExchange(program);
  Block *block = exchange->getBlock();
  SmallVector<Operation *> before;
  for (Operation &op :
       llvm::make_range(block->begin(), exchange->getIterator()))
    before.push_back(&op);
  exchange.erase();
  for (Operation *op : llvm::reverse(before)) {
    SmallVector<StoreOp> stores;
    op->walk([&](StoreOp store) { stores.push_back(store); });
    bool isStore = isa<StoreOp>(op);
    for (StoreOp store : stores)
      store.erase();
    if (!isStore && isOpTriviallyDead(op))
      op->erase();
  }
}

/// The ranks wait for each other at both ends of the program, and it pulls.
static void placeWaits(KernelOp kernel, Operation *program) {
  OpBuilder b(program);
  Location loc = program->getLoc();
  Value arrived = WaitPeersOp::create(b, loc, b.getI1Type());
  auto branch = scf::IfOp::create(b, loc, arrived, /*withElseRegion=*/false);
  Value valid = ReleasePeersOp::create(b, loc, b.getI1Type(), arrived);
  // Behind the release: what was read is known to be the peers' only then.
  Value isMarked = arith::XOrIOp::create(
      b, loc, valid, arith::ConstantIntOp::create(b, loc, true, 1));
  auto marks = scf::IfOp::create(b, loc, isMarked, /*withElseRegion=*/false);
  OpBuilder marked(marks.thenBlock()->getTerminator());
  markPeers(kernel, marked.clone(*program));
  program->moveBefore(branch.thenBlock()->getTerminator());
}

/// The ranks wait for each other's stores between two parts of the program.
static void placeExchange(KernelOp kernel, Operation *program) {
  OpBuilder b(program);
  Location loc = program->getLoc();
  auto begin = BeginExchangeOp::create(b, loc, b.getIndexType(), b.getI1Type());
  SmallVector<TurnOp> turns;
  kernel.walk([&](TurnOp turn) { turns.push_back(turn); });
  for (TurnOp turn : turns) {
    turn.getTurn().replaceAllUsesWith(begin.getTurn());
    turn.erase();
  }
  Value sends = begin.getSends();
  Operation *sending = b.clone(*program);
  keepSends(sending, sends);
  gatherSends(kernel, sending);
  Value arrived = EndExchangeOp::create(b, loc, b.getI1Type(), sends);
  auto branch = scf::IfOp::create(b, loc, arrived, /*withElseRegion=*/true);
  keepMerge(program);
  markPeers(kernel,
            OpBuilder(branch.elseBlock()->getTerminator()).clone(*program));
  program->moveBefore(branch.thenBlock()->getTerminator());
}

void PlaceCollectivesPass::runOnOperation() {
  KernelOp kernel = getOperation();
  if (failed(verifyPlanned(kernel)))
    return signalPassFailure();
  if (!kernel.isCollective())
    return;
  if (!isGPU(getTarget(kernel))) {
    if (ExchangeOp exchange = kernel.getExchange()) {
      exchange.emitError() << "expected a GPU as target of a kernel with an "
                              "exchange, got "
                           << getTarget(kernel);
      return signalPassFailure();
    }
    return;
  }
  Operation *program = findProgram(kernel);
  if (!program) {
    kernel.emitError() << "expected the program of a row in a collective "
                          "kernel, got none";
    return signalPassFailure();
  }
  LDBG() << kernel.getSymName() << ": its ranks wait for each other";
  if (kernel.getExchange())
    placeExchange(kernel, program);
  else
    placeWaits(kernel, program);
}
