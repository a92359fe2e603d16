//===- Thread.cpp - a thread of a block and its row -----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GPU/Thread.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/LaneConflicts.h"
#include "lib/Transforms/Target.h"
#include "lib/Transforms/ThreadOps.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlafix;

Thread mlafix::buildThread(OpBuilder &b, Location loc, LayoutAttr layout) {
  IndexBuilder x(b, loc);
  Thread thread;
  int64_t lanes = layout.getLanes();
  thread.id = buildThreadId(b, loc);
  thread.group = x.div(thread.id, x.i32(lanes));
  if (lanes == 1)
    return thread;
  bool isPower = llvm::isPowerOf2_64(lanes);
  Value lane = isPower ? x.band(thread.id, x.i32(lanes - 1))
                       : x.rem(thread.id, x.i32(lanes));
  thread.lane = x.toIndex(lane);
  if (!isPower) // the lanes do not synchronise
    return thread;
  if (lanes >= kWarpThreads) {
    thread.members = x.i32(-1);
    return thread;
  }
  // The row's lanes within the warp: ones, shifted to where the row begins.
  Value begin = x.band(thread.id, x.i32((kWarpThreads - 1) & ~(lanes - 1)));
  thread.members =
      arith::ShLIOp::create(b, loc, x.i32((int64_t(1) << lanes) - 1), begin);
  return thread;
}

void mlafix::buildDependency(OpBuilder &b, Location loc, KernelOp kernel) {
  if (!getMachine(kernel).dependentLaunch)
    return;
  buildGridWait(b, loc);
  buildLaunchDependents(b, loc);
}

LogicalResult mlafix::verifyLanes(KernelOp kernel) {
  int64_t lanes = kernel.getLayoutAttr().getLanes();
  if (llvm::isPowerOf2_64(lanes) || !lanesSynchronise(kernel))
    return success();
  return kernel.emitError() << "expected a power of two of lanes in a layout "
                               "whose lanes meet, got "
                            << lanes;
}

Value GridRows::number(Value i32) {
  return isNarrow ? i32 : IndexBuilder(b, forall.getLoc()).toIndex(i32);
}

Value GridRows::constant(int64_t value) {
  IndexBuilder x(b, forall.getLoc());
  return isNarrow ? x.i32(value) : x.constant(value);
}

Value GridRows::index(Value number) {
  return isNarrow ? IndexBuilder(b, forall.getLoc()).toIndex(number) : number;
}

Value GridRows::count() {
  IndexBuilder x(b, forall.getLoc());
  Value total;
  for (Value extent : forall.getExtents()) {
    extents.push_back(isNarrow ? x.toI32(extent) : extent);
    total = total ? x.mul(total, extents.back()) : extents.back();
  }
  return total;
}

SmallVector<Value> GridRows::indicesOf(Value row, Value isTiled, int64_t tile) {
  IndexBuilder x(b, forall.getLoc());
  SmallVector<Value> indices;
  if (!isTiled || tile == 1) {
    indices = x.delinearize(row, extents);
  } else {
    Value whole = x.band(extents.front(), constant(-tile)); // in whole tiles
    for (Value extent : ArrayRef(extents).drop_front())
      whole = x.mul(whole, extent);
    Value zero = constant(0), inTile = x.band(isTiled, x.ult(row, whole));
    Value shift = x.select(inTile, constant(llvm::Log2_64(tile)), zero);
    Value last = x.select(inTile, constant(tile - 1), zero);
    indices = x.delinearize(
        arith::ShRUIOp::create(b, forall.getLoc(), row, shift), extents);
    Value first =
        arith::ShLIOp::create(b, forall.getLoc(), indices.front(), shift);
    indices.front() = x.add(first, x.band(row, last));
  }
  for (Value &value : indices)
    value = index(value);
  return indices;
}

RowOp mlafix::buildRow(OpBuilder &b, Location loc, const Thread &thread) {
  return RowOp::create(b, loc, thread.lane, thread.members, ValueRange());
}
