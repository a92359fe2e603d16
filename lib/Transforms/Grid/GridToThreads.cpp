//===- GridToThreads.cpp - lower a dense grid to threads ------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Guards.h"
#include "dialect/Plan.h"
#include "lib/Transforms/AccessPredicate.h"
#include "lib/Transforms/Grid/RowOrder.h"
#include "lib/Transforms/Grid/RowsAhead.h"
#include "lib/Transforms/Grid/Strategies.h"
#include "lib/Transforms/Grid/Thread.h"
#include "lib/Transforms/GridLowering.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/Target.h"
#include "lib/Transforms/ThreadOps.h"
#include "mlafix/UnitLimits.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlafix;

/// Builds an i1 in front of the grid that is true if one of `conditions`
/// differs between the first and the last row. Returns null if scalar
/// arithmetic cannot compute `conditions`.
static Value buildEndsDiffer(OpBuilder &b, ForallOp forall,
                             const SetVector<Value> &conditions) {
  Location loc = forall.getLoc();
  Block &body = forall.getBody().front();
  BackwardSliceOptions options;
  options.inclusive = true;
  options.filter = [&](Operation *op) { return forall->isProperAncestor(op); };
  SetVector<Operation *> slice;
  for (Value condition : conditions)
    if (failed(getBackwardSlice(condition, &slice, options)))
      return Value();
  if (!llvm::all_of(slice, [&](Operation *op) {
        return isMemoryEffectFree(op) && op->getNumRegions() == 0 &&
               op->getBlock() == &body &&
               llvm::none_of(op->getOperandTypes(), isRowTile);
      }))
    return Value();
  auto buildAt = [&](function_ref<Value(Value)> position) {
    IRMapping mapping;
    for (auto [index, extent] :
         llvm::zip(body.getArguments(), forall.getExtents()))
      mapping.map(index, position(extent));
    for (Operation *op : slice)
      b.clone(*op, mapping);
    return mapping;
  };
  Value zero = arith::ConstantIndexOp::create(b, loc, 0),
        one = arith::ConstantIndexOp::create(b, loc, 1);
  IRMapping first = buildAt([&](Value) { return zero; });
  IRMapping last = buildAt([&](Value extent) -> Value {
    return arith::SubIOp::create(b, loc, extent, one);
  });
  Value any;
  for (Value condition : conditions) {
    Value differs =
        arith::XOrIOp::create(b, loc, first.lookupOrDefault(condition),
                              last.lookupOrDefault(condition));
    any = any ? arith::OrIOp::create(b, loc, any, differs) : differs;
  }
  return any;
}

/// Interleaves the halves of the grid: blocks 0, 1, 2, … take positions 0, n /
/// 2, 1, n / 2 + 1, …. Blocks that share a row move together. Rows that the
/// kernel leaves unchanged are usually adjacent and use no bandwidth, so their
/// blocks should run beside blocks that store rows. If the conditions of stores
/// (getRowConditions()) have the same values at both ends of the grid, blocks
/// keep their positions, which is faster. The plan of an exchange never
/// interleaves blocks: the same block of each rank must have the same rows, but
/// the conditions may differ between ranks.
static Value interleaveHalves(OpBuilder &b, ForallOp forall, Value block,
                              Value parts) {
  auto kernel = forall->getParentOfType<KernelOp>();
  if (!kernel.getPlanAttr().has(PlanField::Interleaved))
    return block;
  SetVector<Value> conditions = getRowConditions(forall);
  Location loc = forall.getLoc();
  IndexBuilder x(b, loc);
  Value differs = buildEndsDiffer(b, forall, conditions);
  Value blocks = buildGridSize(b, loc);
  if (LayoutAttr layout = kernel.getLayoutAttr(); layout.isClustered())
    blocks = x.div(blocks, x.i32(layout.getBlocks()));
  else if (parts)
    blocks = x.div(blocks, parts);
  Value two = x.i32(2);
  Value half = x.div(x.add(blocks, x.i32(1)), two);
  Value offset = x.mul(x.rem(block, two), half);
  Value place = x.add(x.div(block, two), offset);
  return differs ? arith::SelectOp::create(b, loc, differs, place, block)
                 : place;
}

/// Returns true if the rows of the grid fill whole warps, whatever the dynamic
/// extents are. The number of rows is known only to be a multiple of the
/// product of the static extents.
static bool fillsWarps(ForallOp forall, LayoutAttr layout) {
  int64_t known = 1;
  for (Value extent : forall.getExtents())
    if (std::optional<int64_t> size = getConstantIntValue(extent))
      known *= *size;
  int64_t lanes = layout.getLanes();
  return lanes >= limits::warpThreads ||
         (layout.getThreads() % limits::warpThreads == 0 &&
          limits::warpThreads % lanes == 0 &&
          known % (limits::warpThreads / lanes) == 0);
}

namespace {
/// The number of parts of a row: `extent` for the geometry of the launch,
/// `count` as an i32 in the kernel.
struct RowParts {
  ExtentAttr extent;
  Value count;
};
} // namespace

/// Returns the only dim whose rows have more than one part. Returns null if
/// there is no such dim or more than one.
static DimAttr findDimInParts(KernelOp kernel, LayoutAttr layout) {
  SetVector<DimAttr> dims;
  kernel.walk([&](Operation *op) {
    for (Type type :
         llvm::concat<Type>(op->getOperandTypes(), op->getResultTypes()))
      if (isRowTile(type) && layout.partsFor(getTileDim(type)) > 1)
        dims.insert(getTileDim(type));
  });
  return dims.size() == 1 ? dims.front() : DimAttr();
}

/// Builds the number of parts of each row, which is the number that the longest
/// row needs. If only one dim has several parts and the launch gives its size,
/// the number follows from this size. A row without elements has one part, for
/// the scalars that are stored with the row.
static RowParts buildParts(OpBuilder &b, ForallOp forall, KernelOp kernel) {
  LayoutAttr layout = kernel.getLayoutAttr();
  Location loc = forall.getLoc();
  IndexBuilder x(b, loc);
  DimAttr dim = findDimInParts(kernel, layout);
  if (!dim || !dim.isBounded())
    return {ExtentAttr::ofConstant(b.getContext(), layout.getParts()),
            x.i32(layout.getParts())};
  auto [argument, position] = findSizeOf(kernel, dim);
  int64_t part = layout.partFor(dim);
  Value size = x.toI32(buildRowSize(b, loc, kernel, dim));
  Value before = x.add(size, x.i32(part - 1));
  Value count =
      arith::MaxUIOp::create(b, loc, x.div(before, x.i32(part)), x.i32(1));
  return {
      ExtentAttr::get(b.getContext(), argument.getArgNumber(), position, part),
      count};
}

void mlafix::lowerToThreads(KernelOp kernel, ForallOp forall) {
  OpBuilder b(forall);
  Location loc = forall.getLoc();
  IndexBuilder x(b, loc);
  LayoutAttr layout = kernel.getLayoutAttr();
  int64_t leastThreads = std::min(getPlanned(kernel, PlanField::LeastThreads),
                                  layout.getThreads());
  bool isAdaptable = leastThreads < layout.getThreads();
  RowParts parts;
  if (layout.isInParts())
    parts = buildParts(b, forall, kernel);
  kernel.setGeometryAttr(GridGeometryAttr::get(
      b.getContext(), describeExtents(forall.getExtents()), layout.getRows(),
      layout.getThreads(), leastThreads, layout.getBlocks(), parts.extent));

  Thread thread = buildThread(b, loc, layout, parts.count);
  GridRows rows(b, kernel, forall);
  Value rowsPerBlock = x.i32(layout.getRows());
  if (isAdaptable) // The launch chooses the number of threads per block.
    rowsPerBlock = x.div(buildBlockSize(b, loc), x.i32(layout.getLanes()));
  rowsPerBlock = rows.number(rowsPerBlock);
  Value place = thread.place ? thread.place : buildBlockId(b, loc);
  Value block = rows.number(interleaveHalves(b, forall, place, parts.count));
  Value group = rows.number(thread.group);
  Value row = x.add(x.mul(block, rowsPerBlock), group);
  Value total = rows.count();
  int64_t bundle = getPlanned(kernel, PlanField::RowBundle);
  Value isBundled = bundle > 1 ? buildIsTransposed(b, kernel, forall) : Value();
  SmallVector<Value> indices = rows.indicesOf(row, isBundled, bundle);

  Value isRow;
  // The last block may have threads past the last row. A rank without rows
  // still launches a block, to synchronise with the other ranks.
  if (layout.getRows() > 1 || kernel.isCollective())
    isRow = x.ult(row, total);
  prefetchTables(b, kernel, forall);
  // The code before this point only prefetches from memory, so it can overlap
  // the preceding grid.
  buildDependency(b, loc, kernel);

  // Threads past the last row skip the body but do not return, because they
  // take part in block-wide operations.
  if (isRow) {
    auto guard = scf::IfOp::create(b, loc, isRow, /*withElseRegion=*/false);
    b.setInsertionPoint(guard.thenBlock()->getTerminator());
  }
  auto program = RowOp::create(b, loc, thread.lane, thread.mask, ValueRange());
  program.setWholeWarps(fillsWarps(forall, layout));
  b.setInsertionPoint(program.getBody().front().getTerminator());
  prefetchRowsAhead(b, kernel, forall, rows, row, total, thread.lane);
  inlineRow(b, forall.getBody().front(), indices);
  forall.erase();
}
