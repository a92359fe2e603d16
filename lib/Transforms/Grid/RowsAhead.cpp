//===- RowsAhead.cpp - prefetch the rows of later blocks ------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Grid/RowsAhead.h"
#include "dialect/Plan.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/Layout/LongRows.h"
#include "mlafix/UnitLimits.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlafix;

static Type getMemoryType(LoadOp load) {
  return getElementTypeOrSelf(load.getSource());
}

static int64_t countBytes(LoadOp load) {
  return getRowBytes(load.getType(), getMemoryType(load));
}

/// Returns true if `load` reads a whole row of static size from a single
/// tensor, and the row depends only on the grid's indices.
static bool readsRowOfGrid(KernelOp kernel, Block &body, LoadOp load) {
  BlockArgument tensor = getKernelArgument(load.getSource());
  if (!isRowTile(load.getType()) || !tensor || tensor != load.getSource())
    return false;
  unsigned number = tensor.getArgNumber();
  DimAttr dim = getTileDim(load.getType());
  return !load.getPredicate() && !load.getGroup() && !load.getMember() &&
         !load.getBegin() && dim.isBound() && !dim.isBounded() &&
         !isSwizzled(tensor) && !kernel.isArgOptional(number) &&
         !kernel.isArgMany(number) && !kernel.isArgPeers(number) &&
         getDTypeBits(getMemoryType(load)) >= 8 &&
         llvm::is_contained(load.getIndices(), body.getArgument(0)) &&
         llvm::all_of(load.getIndices(), [&](Value index) {
           auto argument = dyn_cast<BlockArgument>(index);
           return (argument && argument.getOwner() == &body) ||
                  matchPattern(index, m_Constant());
         });
}

RowsOfGrid mlafix::findRowsOfGrid(KernelOp kernel, ForallOp forall) {
  Block &body = forall.getBody().front();
  RowsOfGrid rows;
  for (LoadOp load : body.getOps<LoadOp>())
    if (readsRowOfGrid(kernel, body, load)) {
      rows.loads.push_back(load);
      rows.bytes += countBytes(load);
    }
  return rows;
}

/// Prefetches lines of the row at `indices`. Each of the `lanes` lanes
/// prefetches every `lanes`-th line.
static void prefetchLines(OpBuilder &b, LoadOp load, ValueRange indices,
                          Value lane, int64_t lanes) {
  Location loc = load.getLoc();
  IndexBuilder x(b, loc);
  int64_t bytes = limits::tableLineBytes,
          lines = llvm::divideCeil(countBytes(load), bytes),
          elements = 8 * bytes / getDTypeBits(getMemoryType(load));
  for (int64_t first = 0; first < lines; first += lanes) {
    OpBuilder::InsertionGuard guard(b);
    Value line = x.add(lane, x.constant(first));
    if (first + lanes > lines) {
      auto branch = scf::IfOp::create(b, loc, x.ult(line, x.constant(lines)),
                                      /*withElseRegion=*/false);
      b.setInsertionPoint(branch.thenYield());
    }
    SmallVector<Value> element(indices);
    element.push_back(x.mul(line, x.constant(elements)));
    memref::PrefetchOp::create(b, loc, load.getSource(), element,
                               /*isWrite=*/false, /*localityHint=*/2,
                               /*isDataCache=*/true);
  }
}

void mlafix::prefetchRowsAhead(OpBuilder &b, KernelOp kernel, ForallOp forall,
                               GridRows &rows, Value row, Value total,
                               Value lane) {
  int64_t ahead = getPlanned(kernel, PlanField::RowsAhead);
  SmallVector<LoadOp> loads = findRowsOfGrid(kernel, forall).loads;
  if (!ahead || loads.empty())
    return;
  Block &body = forall.getBody().front();
  Location loc = forall.getLoc();
  OpBuilder::InsertionGuard guard(b);
  Operation *last = loads.back();
  for (Operation &op : body) {
    if (isa<ReduceOp>(op))
      break;
    if (isa<LoadOp>(op))
      last = &op;
  }
  b.setInsertionPointAfter(last);
  IndexBuilder x(b, loc);
  Value next = x.add(row, rows.constant(ahead));
  auto branch = scf::IfOp::create(b, loc, x.ult(next, total),
                                  /*withElseRegion=*/false);
  b.setInsertionPoint(branch.thenYield());
  IRMapping mapping;
  for (auto [argument, index] :
       llvm::zip(body.getArguments(), rows.indicesOf(next)))
    mapping.map(argument, index);
  for (LoadOp load : loads) {
    SmallVector<Value> indices;
    for (Value index : load.getIndices())
      indices.push_back(mapping.lookupOrDefault(index));
    prefetchLines(b, load, indices, lane, kernel.getLayoutAttr().getLanes());
  }
}
