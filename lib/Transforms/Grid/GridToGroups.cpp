//===- GridToGroups.cpp - lower a dense grid to groups of lanes -----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Guards.h"
#include "dialect/MlafixThread.h"
#include "dialect/Plan.h"
#include "lib/Transforms/Grid/RowOrder.h"
#include "lib/Transforms/Grid/Strategies.h"
#include "lib/Transforms/Grid/Thread.h"
#include "lib/Transforms/GridLowering.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/Target.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-lower-grid"

using namespace mlir;
using namespace mlafix;

/// Returns the first merge loop of a row. There must be at least one.
static MergeLoopOp getMergeLoop(ForallOp forall) {
  return *forall.getOps<MergeLoopOp>().begin();
}

/// Returns the geometry of a launch that distributes the iterations of merge
/// loops over lane groups. The upper bound of the first merge loop gives the
/// number of iterations, since usually all merge loops have the same upper
/// bound. The launch adds groups as long as no multiprocessor has more than
/// ThreadsPerMultiprocessor threads. With too few threads, memory is idle. With
/// more threads than the multiprocessors can hold, the last blocks run alone.
static GroupsGeometryAttr describeGroups(KernelOp kernel, ForallOp forall) {
  MergeLoopOp loop = getMergeLoop(forall);
  LayoutAttr layout = kernel.getLayoutAttr();
  return GroupsGeometryAttr::get(
      kernel.getContext(), describeExtents(forall.getExtents()),
      layout.getLanes(), layout.getThreads(), /*most=*/layout.getGroups(),
      /*chunk=*/loop.getStep(), LayoutAttr::kLeastGrouped,
      getPlanned(kernel, PlanField::ThreadsPerMultiprocessor),
      /*pieces=*/describeExtent(loop.getUpper()));
}

namespace {
/// The position of a thread in a layout of lane groups. All members are i32.
struct GroupThread {
  Value group;        ///< number of the group in the block
  Value groups;       ///< number of groups in the block
  Value groupThreads; ///< number of threads per group
  Value member;       ///< number of the thread in the group
};
} // namespace

static GroupThread buildGroupThread(OpBuilder &b, Location loc,
                                    KernelOp kernel) {
  IndexBuilder x(b, loc);
  Type i32 = b.getI32Type();
  GroupThread thread;
  thread.groupThreads = addArgument(kernel, "group_threads", i32);
  // The number of threads per group is a power of two, so shifts replace
  // divisions.
  Value last = x.sub(thread.groupThreads, x.i32(1));
  Value shift = math::CtPopOp::create(b, loc, last);
  Value id = buildThreadId(b, loc);
  thread.group = x.shr(id, shift);
  thread.member = x.band(id, last);
  thread.groups = x.shr(buildBlockSize(b, loc), shift);
  return thread;
}

/// Restricts the ops after the last merge loop of `row` to threads for which
/// the i1 `isStored` is true: those of the first group, in rows that exist.
static void guardStores(RowOp row, Value isStored) {
  Operation *last = row.getBody().front().getTerminator();
  Operation *loop = last->getPrevNode();
  while (!isa<MergeLoopOp>(loop))
    loop = loop->getPrevNode();
  OpBuilder b(row.getContext());
  b.setInsertionPointAfter(loop);
  auto store =
      scf::IfOp::create(b, row.getLoc(), isStored, /*withElseRegion=*/false);
  Operation *end = store.thenBlock()->getTerminator();
  for (Operation *op = store->getNextNode(); op != last;) {
    Operation *next = op->getNextNode();
    op->moveBefore(end);
    op = next;
  }
}

void mlafix::lowerToGroups(KernelOp kernel, ForallOp forall) {
  OpBuilder b(forall);
  Location loc = forall.getLoc();
  IndexBuilder x(b, loc);
  LayoutAttr layout = kernel.getLayoutAttr();
  LDBG() << kernel.getSymName() << ": up to " << layout.getGroups()
         << " groups of lanes for a row";
  kernel.setGeometryAttr(describeGroups(kernel, forall));

  GroupThread thread = buildGroupThread(b, loc, kernel);
  GridRows rows(b, kernel, forall);
  Value block = buildBlockId(b, loc);
  Value number =
      x.add(x.mul(rows.number(block), rows.number(thread.groupThreads)),
            rows.number(thread.member));
  Value lanes = rows.constant(layout.getLanes());
  Value row = x.div(number, lanes), lane = x.rem(number, lanes);
  lane = rows.index(lane);

  Value total = rows.count();
  Value one = rows.constant(1);
  Value isFirst = x.compare(arith::CmpIPredicate::eq, thread.group, x.i32(0));
  Value isStored = x.band(x.ult(row, total), isFirst);
  row = arith::MinUIOp::create(b, loc, row, x.sub(total, one));
  SmallVector<Value> indices = rows.indicesOf(row);
  prefetchTables(b, kernel, forall);
  buildDependency(b, loc, kernel);

  if (kernel.isCollective()) {
    // A rank without rows still launches a block, to synchronise with the other
    // ranks. This block must not compute a row.
    Value hasRows =
        x.compare(arith::CmpIPredicate::ne, total, rows.constant(0));
    auto guard = scf::IfOp::create(b, loc, hasRows, /*withElseRegion=*/false);
    b.setInsertionPoint(guard.thenBlock()->getTerminator());
  }
  auto program = RowOp::create(b, loc, lane, /*mask=*/Value(),
                               ValueRange{thread.group, thread.groups,
                                          thread.groupThreads, thread.member});
  b.setInsertionPoint(program.getBody().front().getTerminator());
  inlineRow(b, forall.getBody().front(), indices);
  guardStores(program, isStored);
  forall.erase();
}
