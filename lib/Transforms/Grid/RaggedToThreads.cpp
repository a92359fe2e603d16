//===- RaggedToThreads.cpp - lower a ragged grid to a scan and a loop -----===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Plan.h"
#include "lib/Transforms/AccessPredicate.h"
#include "lib/Transforms/Grid/RaggedRows.h"
#include "lib/Transforms/Grid/RaggedStores.h"
#include "lib/Transforms/Grid/Strategies.h"
#include "lib/Transforms/Grid/Thread.h"
#include "lib/Transforms/GridLowering.h"
#include "lib/Transforms/Rows/PackAccess.h"
#include "lib/Transforms/Target.h"
#include "lib/Transforms/ThreadOps.h"
#include "mlafix/UnitLimits.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"
#include "llvm/Support/MathExtras.h"

#define DEBUG_TYPE "mlafix-lower-grid"

using namespace mlir;
using namespace mlafix;

namespace {
/// Scans the predicate of a ragged grid over chunks of segments, and
/// distributes the selected rows over the grid.
///
/// Each thread evaluates the predicate of `perThread` segments of a chunk. If
/// no segment of the chunk is selected, one block-wide reduction tells all
/// threads. Otherwise the prefix sums of the lengths of the selected segments
/// go to shared memory, and RaggedRows numbers the rows. Well-formed segments
/// have at most 2^31 - 1 rows in total. Malformed segments that overlap can
/// have more; some of their rows are then lost, but no access is out of bounds.
///
/// If there is more than one chunk, the predicates of all segments are
/// evaluated first, without reading the bounds of the segments and with a
/// single reduction. Most calls select no segment, and end after this
/// reduction.
///
/// Scalars that depend only on indices are stored in a separate pass, with one
/// thread per scalar, for a bundle of rows and inner indices at a time. This
/// writes whole sectors, no matter which of the indices is contiguous in
/// memory.
class RaggedScan {
public:
  RaggedScan(KernelOp kernel, RaggedForallOp grid)
      : kernel(kernel), grid(grid), layout(kernel.getLayoutAttr()),
        threads(layout.getThreads()),
        perThread(getPlanned(kernel, PlanField::Segments)), b(grid),
        loc(grid.getLoc()), x(b, loc), predicate(b, grid) {}

  void build();

private:
  /// Builds an i1 that is true if the i1 `flag` is true in any thread of the
  /// block.
  Value isAny(Value flag) {
    Value bits = arith::ExtUIOp::create(b, loc, b.getI32Type(), flag);
    return x.compare(arith::CmpIPredicate::ne, buildBarrierOr(b, loc, bits),
                     x.i32(0));
  }
  Value segmentOf(Value base, Value position);
  std::pair<Value, Value> selectedRows(Value segment, Value segments);
  Value countSegments();
  Value evaluatePredicates(Value segments);
  Value scan(Value sum, Value &total);
  void planBundles();
  void forEachRow(const RowBundle &bundle, Value base,
                  function_ref<void(ValueRange)> body);
  void storeScalars(Value base);
  void buildRows(Value base);

  KernelOp kernel;
  RaggedForallOp grid;
  LayoutAttr layout;
  int64_t threads;
  int64_t perThread; // segments of a chunk per thread
  OpBuilder b;
  Location loc;
  IndexBuilder x;
  SegmentPredicate predicate;
  Thread thread;
  Value warpId, laneId, warpTotals;
  std::optional<RaggedRows> rows;
  // The scalars that a block stores at a time, and the rows that it processes
  // at a time. Nullopt if the body has no such scalars, or no rows.
  std::optional<RowBundle> scalarBundle, rowBundle;
  // Stores that are executed apart from the program of a row.
  IndexStores scalars;
};
} // namespace

/// Returns the segment at `position` of the chunk. Neighbouring threads read
/// neighbouring segments, so position t * perThread + k is segment k * threads
/// + t of the chunk.
Value RaggedScan::segmentOf(Value base, Value position) {
  Value count = x.constant(perThread);
  Value round = x.div(position, count);
  Value first = x.mul(x.rem(position, count), x.constant(threads));
  return x.add(base, x.add(first, round));
}

/// Returns the first row (index) of a segment and the number of its rows (i32).
/// The number is 0 if the segment is malformed, not selected, or past the last
/// segment. A thread whose segment is past the last one reads the last one
/// again instead of branching, so that all loads are in flight at once.
std::pair<Value, Value> RaggedScan::selectedRows(Value segment,
                                                 Value segments) {
  Value known =
      arith::MinUIOp::create(b, loc, segment, x.sub(segments, x.constant(1)));
  Value start = loadBoundary(b, grid, known),
        end = loadBoundary(b, grid, x.add(known, x.constant(1)));
  Value exists = x.ult(segment, segments);
  Value selected = x.band(predicate.isSelected(known), exists);
  selected = selectWellFormed(b, grid, selected, start, end);
  return {start, x.select(selected, x.toI32(x.sub(end, start)), x.i32(0))};
}

/// Builds the number of segments. An empty cu_seqlens has 0 segments, not 2^64
/// - 1.
Value RaggedScan::countSegments() {
  Value segments = x.sub(memref::DimOp::create(b, loc, grid.getCuSeqlens(), 0),
                         x.constant(1));
  Value none = x.compare(arith::CmpIPredicate::slt, segments, x.constant(0));
  return x.select(none, x.constant(0), segments);
}

/// Returns the number of segments to scan. It is 0 if there is more than one
/// chunk and no segment is selected, else `segments`.
Value RaggedScan::evaluatePredicates(Value segments) {
  Value isMany = x.compare(arith::CmpIPredicate::ugt, segments,
                           x.constant(threads * perThread));
  auto many = scf::IfOp::create(b, loc, TypeRange{b.getIndexType()}, isMany,
                                /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(many.elseBlock());
  scf::YieldOp::create(b, loc, segments);
  b.setInsertionPointToStart(many.thenBlock());
  buildDependency(b, loc, kernel);
  Value none = arith::ConstantIntOp::create(b, loc, false, 1);
  int64_t ahead = getPlanned(kernel, PlanField::SegmentsAhead);
  auto loop = scf::ForOp::create(b, loc, x.constant(0), segments,
                                 x.constant(threads * ahead), none);
  {
    OpBuilder::InsertionGuard inLoop(b);
    b.setInsertionPointToStart(loop.getBody());
    Value selected = predicate.isAnySelected(
        loop.getInductionVar(), x.toIndex(thread.id), ahead, threads, segments);
    Value any =
        arith::OrIOp::create(b, loc, loop.getRegionIterArg(0), selected);
    scf::YieldOp::create(b, loc, any);
  }
  Value result = x.select(isAny(loop.getResult(0)), segments, x.constant(0));
  scf::YieldOp::create(b, loc, result);
  return many.getResult(0);
}

/// Builds the exclusive prefix sum of `sum` over the threads of the block. Sets
/// `total` to the sum over all threads.
Value RaggedScan::scan(Value sum, Value &total) {
  Value inclusive = sum;
  for (int64_t distance = 1; distance < limits::warpThreads; distance *= 2) {
    Value other = buildShuffleUp(b, loc, inclusive, distance);
    Value has = x.compare(arith::CmpIPredicate::uge, laneId, x.i32(distance));
    inclusive = x.select(has, rows->saturatingAdd(inclusive, other), inclusive);
  }
  Value below = buildShuffleUp(b, loc, inclusive, 1);
  Value before = x.select(x.compare(arith::CmpIPredicate::eq, laneId, x.i32(0)),
                          x.i32(0), below);
  auto isLast = scf::IfOp::create(b, loc,
                                  x.compare(arith::CmpIPredicate::eq, laneId,
                                            x.i32(limits::warpThreads - 1)),
                                  false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(isLast.thenBlock()->getTerminator());
    memref::StoreOp::create(b, loc, inclusive, warpTotals,
                            ValueRange{x.toIndex(warpId)});
  }
  buildBarrier(b, loc);
  total = x.i32(0);
  for (int64_t warp = 0; warp < threads / limits::warpThreads; ++warp) {
    Value warpTotal = memref::LoadOp::create(b, loc, warpTotals,
                                             ValueRange{x.constant(warp)});
    Value isBefore = x.ult(x.i32(warp), warpId);
    before = x.select(isBefore, rows->saturatingAdd(before, warpTotal), before);
    total = rows->saturatingAdd(total, warpTotal);
  }
  return before;
}

/// Plans the rows that a block processes at a time, and the number of blocks.
/// The first bundles of rows go to the first blocks. To balance the blocks, the
/// first bundles of scalars go to the last blocks. In a layout of several rows,
/// several lane groups share a row of the ragged grid: as many as the row has
/// inner indices, rounded up to a power of two, but at most all groups.
///
/// If many rows are only stored, they are scattered, so that all blocks
/// together write a small contiguous window of memory. On an H200, a fill of
/// 268 MB takes 60 us if each block writes 4 KB at a time, and 64 us with 32
/// KB.
void RaggedScan::planBundles() {
  scalars = findIndexStores(grid.getBody().front());
  Value block = buildBlockId(b, loc);
  if (!scalars.stores.empty()) {
    Value blocks = buildGridSize(b, loc);
    int64_t tileRows = getPlanned(kernel, PlanField::ScalarBundleRows);
    Value bundleRows = x.i32(tileRows);
    scalarBundle = RowBundle{
        tileRows, threads / tileRows, x.rem(thread.id, bundleRows),
        x.div(thread.id, bundleRows), x.sub(x.sub(blocks, x.i32(1)), block)};
    rows->addBundle(*scalarBundle);
  }
  bool isAllScalars = storesScalarsAlone(grid.getBody().front(), scalars);
  int64_t perRow = layout.getRows();
  // The product of the inner extents, each limited to perRow. It is 0 if an
  // extent is not static.
  int64_t size = 1;
  for (Value extent : grid.getInner()) {
    APInt value;
    bool isKnown = size && matchPattern(extent, m_ConstantInt(&value));
    size = isKnown ? size * std::min<int64_t>(value.getSExtValue(), perRow) : 0;
  }
  if (size)
    perRow = std::min<int64_t>(perRow, llvm::PowerOf2Ceil(size));
  if (!isAllScalars) {
    Value groups = x.i32(perRow);
    rowBundle = RowBundle{layout.getRows() / perRow,
                          perRow,
                          x.div(thread.group, groups),
                          x.rem(thread.group, groups),
                          block,
                          getPlanned(kernel, PlanField::ScatteredRows)};
    rows->addBundle(*rowBundle);
  }
  LDBG() << kernel.getSymName() << ": " << scalars.stores.size()
         << " scalars by themselves, "
         << (isAllScalars ? "no rows" : "rows by groups of lanes");
  kernel.setGeometryAttr(RaggedGeometryAttr::get(
      b.getContext(), describeExtent(grid.getRows()),
      describeExtents(grid.getInner()),
      getPlanned(kernel, PlanField::PairsPerBlock), threads,
      getPlanned(kernel, PlanField::RaggedBlocks),
      kernel.getPlanAttr().has(PlanField::RaggedBlocksFit)));
}

/// Calls `body` with the grid's indices of each (row, inner index) pair of this
/// thread.
void RaggedScan::forEachRow(const RowBundle &bundle, Value base,
                            function_ref<void(ValueRange)> body) {
  rows->forEachRow(bundle, [&](Value position, Value row, ValueRange inner) {
    SmallVector<Value> indices = {segmentOf(base, position), row};
    llvm::append_range(indices, inner);
    body(indices);
  });
}

/// Stores the scalars, with one thread per scalar. In a bundle of rows by inner
/// indices, neighbouring threads have neighbouring rows.
void RaggedScan::storeScalars(Value base) {
  forEachRow(*scalarBundle, base, [&](ValueRange indices) {
    IRMapping mapping;
    mapping.map(grid.getBody().getArguments(), indices);
    for (Operation *op : scalars.ops) {
      Operation *copy = b.clone(*op, mapping);
      auto store = dyn_cast<StoreOp>(copy);
      if (!store)
        continue;
      Value target = store.getTarget();
      Value value = narrow(b, loc, target, store.getValue());
      SmallVector<Value> indices =
          buildIndices(b, loc, store.getAccesses().front(), Value());
      writeIf(b, loc, accessPredicate(b, loc, store.getPredicate(), target),
              [&](OpBuilder &then) {
                memref::StoreOp::create(then, loc, value, target, indices);
              });
      store.erase();
    }
  });
  for (StoreOp store : scalars.stores)
    store.erase();
}

void RaggedScan::buildRows(Value base) {
  forEachRow(*rowBundle, base, [&](ValueRange indices) {
    OpBuilder::InsertionGuard guard(b);
    auto row = RowOp::create(b, loc, thread.lane, thread.mask, ValueRange());
    b.setInsertionPoint(row.getBody().front().getTerminator());
    inlineRow(b, grid.getBody().front(), indices);
  });
}

void RaggedScan::build() {
  thread = buildThread(b, loc, layout);
  laneId = x.band(thread.id, x.i32(limits::warpThreads - 1));
  warpId = x.div(thread.id, x.i32(limits::warpThreads));
  rows.emplace(b, loc, threads * perThread, grid.getInner(), thread.id);
  warpTotals =
      allocShared(b, loc, {threads / limits::warpThreads}, b.getI32Type());
  planBundles();
  Value tid = x.toIndex(thread.id);
  Value segments = countSegments();
  // Every grid waits for the preceding grid. A grid without segments waits
  // here. Otherwise each branch below waits directly before its first load.
  auto isEmpty = scf::IfOp::create(
      b, loc, x.compare(arith::CmpIPredicate::eq, segments, x.constant(0)),
      false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(isEmpty.thenBlock()->getTerminator());
    buildDependency(b, loc, kernel);
  }
  buildLoop(
      b, loc, x.constant(0), evaluatePredicates(segments),
      x.constant(threads * perThread), [&](Value base) {
        // Wait here, after values that are common to all chunks have been
        // computed. A second wait, after that in evaluatePredicates() or in a
        // previous chunk, costs little.
        buildDependency(b, loc, kernel);
        rows->clear();
        SmallVector<Value> starts, lengths;
        Value sum = x.i32(0);
        for (int64_t k = 0; k < perThread; ++k) {
          Value segment = x.add(base, x.add(tid, x.constant(k * threads)));
          auto [start, length] = selectedRows(segment, segments);
          starts.push_back(start);
          lengths.push_back(length);
          sum = rows->saturatingAdd(sum, length);
        }
        auto chunk = scf::IfOp::create(
            b, loc, isAny(x.compare(arith::CmpIPredicate::ne, sum, x.i32(0))),
            false);
        b.setInsertionPoint(chunk.thenBlock()->getTerminator());
        Value total;
        Value before = scan(sum, total);
        rows->publish(x.mul(tid, x.constant(perThread)), starts, lengths,
                      before, total);
        buildBarrier(b, loc);
        if (scalarBundle)
          storeScalars(base);
        if (rowBundle)
          buildRows(base);
        buildBarrier(b, loc); // The next chunk reuses the shared memory.
      });
  grid.erase();
}

void mlafix::lowerRagged(KernelOp kernel, RaggedForallOp grid) {
  RaggedScan(kernel, grid).build();
}
