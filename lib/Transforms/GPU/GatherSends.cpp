//===- GatherSends.cpp - scalars that rows store to the peers -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GPU/GatherSends.h"

#include "dialect/MemoryAccess.h"
#include "dialect/RowProgram.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/RowAccess.h"
#include "lib/Transforms/Target.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-place-collectives"

using namespace mlir;
using namespace mlafix;

namespace {
/// Builds values of a row's program anew, as they are in the first lane of the
/// row of the block that has this thread's number.
class FirstLanes {
public:
  FirstLanes(OpBuilder &b, Location loc, Operation *program, int64_t lanes)
      : b(b), loc(loc), program(program), lanes(lanes) {}

  /// Whether `value` is plain arithmetic, as far as `program` computes it.
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

/// Whether another thread can do `store`, of a scalar, in place of the row's
/// first lane.
static bool isGatherable(StoreOp store, RowOp row, FirstLanes &first) {
  MemoryAccess access = *getSingleAccess(store);
  return !access.isTile && !access.isPart() &&
         store->getParentOp() == row.getOperation() &&
         llvm::all_of(store->getOperands(), [&](Value operand) {
           return operand == store.getValue() || first.isKnown(operand);
         });
}

/// The scalars that `row` stores to the peers, but for those that stay. Stores
/// to one tensor keep their order: all of them are gathered or none.
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

/// Has the first lane of each row keep what `store` stores in shared memory, a
/// place for each row of the block.
static Value keep(OpBuilder &b, StoreOp store, RowOp row, LayoutAttr layout) {
  Location loc = store.getLoc();
  auto space =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  auto type = MemRefType::get({layout.getRows()}, store.getValue().getType(),
                              AffineMap(), space);
  Value buffer = memref::AllocaOp::create(b, loc, type);
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

void mlafix::gatherSends(KernelOp kernel, Operation *program) {
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
