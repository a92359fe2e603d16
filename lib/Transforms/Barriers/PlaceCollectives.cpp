//===- PlaceCollectives.cpp - let ranks wait for each other ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/MemoryAccess.h"
#include "dialect/Mlafix.h"
#include "dialect/MlafixThread.h"
#include "lib/Transforms/GridLowering.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Rows/RowAccess.h"
#include "lib/Transforms/Target.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"

//===----------------------------------------------------------------------===//
// Gathering scalars that are sent
//===----------------------------------------------------------------------===//

#define DEBUG_TYPE "mlafix-place-collectives"

namespace mlafix {
#define GEN_PASS_DEF_PLACECOLLECTIVESPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

namespace {
/// Recomputes values of a row's program in another thread. Thread n of the
/// block computes the values that the first lane of the block's row n has.
class FirstLanes {
public:
  FirstLanes(OpBuilder &b, Location loc, Operation *program, int64_t lanes)
      : b(b), loc(loc), program(program), lanes(lanes) {}

  /// Returns true if `value` is pure arithmetic within `program`, or is
  /// computed before it.
  bool isKnown(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !program->isProperAncestor(op))
      return op || !isInside(value);
    return !op->getNumRegions() && isPure(op) && !isRowTile(value.getType()) &&
           llvm::all_of(op->getOperands(),
                        [&](Value operand) { return isKnown(operand); });
  }

  Value build(Value value);

private:
  bool isInside(Value argument) {
    return program->isAncestor(
        cast<BlockArgument>(argument).getOwner()->getParentOp());
  }

  OpBuilder &b;
  Location loc;
  Operation *program;
  int64_t lanes;
  IRMapping mapping;
};
} // namespace

Value FirstLanes::build(Value value) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op)
    return value;
  if (isThreadId(op)) {
    IndexBuilder x(b, loc);
    mapping.map(value, x.mul(buildThreadId(b, loc), x.i32(lanes)));
    return mapping.lookup(value);
  }
  bool changes = program->isProperAncestor(op);
  for (Value operand : op->getOperands())
    changes |= build(operand) != operand;
  if (!changes)
    return value;
  b.clone(*op, mapping);
  return mapping.lookup(value);
}

/// Returns true if `store` stores a scalar and another thread can execute it
/// for the first lane of the row.
static bool isGatherable(StoreOp store, RowOp row, FirstLanes &first) {
  MemoryAccess access = *getSingleAccess(store);
  return !access.isRow && !access.isPart() &&
         store->getParentOp() == row.getOperation() &&
         llvm::all_of(store->getOperands(), [&](Value operand) {
           return operand == store.getValue() || first.isKnown(operand);
         });
}

/// Returns the stores of scalars to peers in `row` that can be gathered. Stores
/// to one tensor keep their order, so either all or none of them are gathered.
static SmallVector<StoreOp> findSentScalars(KernelOp kernel, RowOp row,
                                            FirstLanes &first) {
  SmallVector<StoreOp> found;
  llvm::SmallDenseSet<unsigned> staying;
  row.walk([&](StoreOp store) {
    unsigned argument = getSingleAccess(store)->getArgNumber();
    if (kernel.isArgPeers(argument) && isGatherable(store, row, first))
      found.push_back(store);
    else
      staying.insert(argument);
  });
  llvm::erase_if(found, [&](StoreOp store) {
    return staying.contains(getSingleAccess(store)->getArgNumber());
  });
  return found;
}

/// Makes the first lane of each row write the value of `store` to shared
/// memory. Returns this memory, which has one element per row of the block.
static Value keep(OpBuilder &b, StoreOp store, RowOp row, LayoutAttr layout) {
  Location loc = store.getLoc();
  Value buffer =
      allocShared(b, loc, {layout.getRows()}, store.getValue().getType());
  OpBuilder inner(store);
  IndexBuilder x(inner, loc);
  Value number = x.div(buildThreadId(inner, loc), x.i32(layout.getLanes()));
  Value isFirst =
      x.compare(arith::CmpIPredicate::eq, row.getLane(), x.constant(0));
  writeIf(inner, loc, isFirst, [&](OpBuilder &then) {
    memref::StoreOp::create(
        then, loc, store.getValue(), buffer,
        ValueRange{IndexBuilder(then, loc).toIndex(number)});
  });
  return buffer;
}

/// Gathers the scalars that the rows of a block store to peers. Neighbouring
/// threads store them in place of the first lane of each row, so that the link
/// transfers adjacent scalars together. `program` contains the program of the
/// row; all threads of the block execute it once.
///
/// A scalar stays where it is if its store is in a loop, or if its indices or
/// predicate are read from memory or computed from a row. All other scalars
/// stored to the same tensor then stay, too.
static void gatherSends(KernelOp kernel, Operation *program) {
  LayoutAttr layout = kernel.getLayoutAttr();
  RowOp row;
  program->walk([&](RowOp op) { row = op; });
  if (!row.getLane() || layout.getRows() == 1)
    return;
  OpBuilder before(program), b(program->getContext());
  b.setInsertionPointAfter(program);
  Location loc = program->getLoc();
  FirstLanes first(b, loc, program, layout.getLanes());
  SmallVector<StoreOp> stores = findSentScalars(kernel, row, first);
  if (stores.empty())
    return;
  LDBG() << kernel.getSymName() << ": neighbouring threads send "
         << stores.size() << " scalars of each row";
  buildBarrier(b, loc);
  IndexBuilder x(b, loc);
  Value thread = buildThreadId(b, loc);
  Value sends =
      x.ult(x.mul(thread, x.i32(layout.getLanes())), buildBlockSize(b, loc));
  if (auto guard = dyn_cast<scf::IfOp>(program))
    sends = x.band(sends, first.build(guard.getCondition()));
  auto branch = scf::IfOp::create(b, loc, sends, /*withElseRegion=*/false);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  for (StoreOp store : stores) {
    Value buffer = keep(before, store, row, layout);
    Value target = store.getTarget();
    MemoryAccess access = *getSingleAccess(store);
    Value value =
        memref::LoadOp::create(b, loc, buffer, ValueRange{x.toIndex(thread)});
    value = narrow(b, loc, target, value);
    SmallVector<Value> indices;
    for (Value index : access.indices)
      indices.push_back(first.build(index));
    Value predicate = store.getPredicate();
    writeIf(b, loc, predicate ? first.build(predicate) : predicate,
            [&](OpBuilder &then) {
              memref::StoreOp::create(then, loc, value, target, indices);
            });
    store.erase();
  }
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
class PlaceCollectivesPass
    : public mlafix::impl::PlaceCollectivesPassBase<PlaceCollectivesPass> {
public:
  void runOnOperation() override;
};
} // namespace

/// Returns the top-level op of the kernel that is, or contains, the program of
/// a row. Returns null if there is none.
static Operation *findProgram(KernelOp kernel) {
  for (Operation &op : kernel.getBody().front())
    if (anyOp(&op, llvm::IsaPred<RowOp>))
      return &op;
  return nullptr;
}

static ExchangeOp findExchange(Operation *program) {
  ExchangeOp found;
  program->walk([&](ExchangeOp op) { found = op; });
  return found;
}

/// Builds the marker that replaces elements which could not be read from peers:
/// NaN, or an integer with all bits set.
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

/// Removes reads of peers' memory from `program`, a copy of the row's program.
/// A marker replaces each loaded element. If a merge loop loads the elements,
/// the marker replaces the results of the loop, since the chunks of a copied
/// loop would need shared memory of their own.
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
  // Erase loops that have lost their uses: those that compute the largest lse
  // of the marked states.
  program->walk([](MergeLoopOp loop) {
    if (loop.use_empty())
      loop.erase();
  });
}

/// Keeps the part of `program` before its exchange. The stores of this part
/// execute only if the i1 `sends` is true. Its loads do not wait for `sends`.
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

/// Keeps the part of `program` after its exchange and all ops that this part
/// needs, but no stores to peers.
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

/// Makes ranks that pull rows wait for each other before and after `program`.
static void placeWaits(KernelOp kernel, Operation *program) {
  OpBuilder b(program);
  Location loc = program->getLoc();
  Value arrived = WaitPeersOp::create(b, loc, b.getI1Type());
  auto branch = scf::IfOp::create(b, loc, arrived, /*withElseRegion=*/false);
  Value valid = ReleasePeersOp::create(b, loc, b.getI1Type(), arrived);
  // Write the markers after the release, because only the release tells whether
  // the reads were valid.
  Value isMarked = arith::XOrIOp::create(
      b, loc, valid, arith::ConstantIntOp::create(b, loc, true, 1));
  auto marks = scf::IfOp::create(b, loc, isMarked, /*withElseRegion=*/false);
  OpBuilder marked(marks.thenBlock()->getTerminator());
  markPeers(kernel, marked.clone(*program));
  program->moveBefore(branch.thenBlock()->getTerminator());
}

/// Splits the program into two parts, between which ranks wait for each other's
/// stores.
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
