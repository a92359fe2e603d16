//===- Thread.cpp - a thread of a block and its row -----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Grid/Thread.h"

#include "dialect/KnownNumbers.h"
#include "dialect/Plan.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/Layout/LaneConflicts.h"
#include "lib/Transforms/Target.h"
#include "lib/Transforms/ThreadOps.h"
#include "mlafix/UnitLimits.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlafix;

/// Builds the position of a thread whose row is shared by `blocks` (i32)
/// blocks. In a cluster, the lanes of a row are consecutive threads. Otherwise
/// each block has a part of the row, and the number of a lane is the index of
/// its first pack in the row.
static Thread buildSharingThread(OpBuilder &b, Location loc, LayoutAttr layout,
                                 Value blocks) {
  IndexBuilder x(b, loc);
  Thread thread;
  thread.id = buildThreadId(b, loc);
  Value block = buildBlockId(b, loc);
  int64_t held = layout.isInParts() ? layout.getPacks() : 1;
  Value before = x.mul(x.rem(block, blocks), x.i32(layout.getThreads() * held));
  thread.place = x.div(block, blocks);
  thread.group = x.i32(0);
  thread.lane = x.toIndex(layout.isInParts() ? x.add(before, thread.id)
                                             : x.bor(before, thread.id));
  if (layout.isClustered())
    thread.mask = x.i32(-1);
  return thread;
}

Thread mlafix::buildThread(OpBuilder &b, Location loc, LayoutAttr layout,
                           Value parts) {
  IndexBuilder x(b, loc);
  if (layout.isClustered())
    return buildSharingThread(b, loc, layout, x.i32(layout.getBlocks()));
  if (parts)
    return buildSharingThread(b, loc, layout, parts);
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
  if (!isPower) // Such lanes do not synchronise, so they need no mask.
    return thread;
  if (lanes >= limits::warpThreads) {
    thread.mask = x.i32(-1);
    return thread;
  }
  // The mask has a one for each lane of the row, shifted to the row's first
  // lane.
  Value begin =
      x.band(thread.id, x.i32((limits::warpThreads - 1) & ~(lanes - 1)));
  thread.mask = x.shl(x.i32((int64_t(1) << lanes) - 1), begin);
  return thread;
}

void mlafix::buildDependency(OpBuilder &b, Location loc, KernelOp kernel) {
  if (!kernel.getPlanAttr().has(PlanField::DependentLaunch))
    return;
  buildGridWait(b, loc);
  buildLaunchDependents(b, loc);
}

LogicalResult mlafix::verifyLanes(KernelOp kernel) {
  int64_t lanes = kernel.getLayoutAttr().getLanes();
  if (llvm::isPowerOf2_64(lanes) || !lanesSynchronise(kernel))
    return success();
  return kernel.emitError() << "expected a power of two of lanes in a layout "
                               "whose lanes synchronise, got "
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

/// Builds the reciprocal (i64), which the launch passes, of an extent that is a
/// compile-time dim whose size is left to the launch. Returns null for other
/// extents.
Value GridRows::buildReciprocal(unsigned extent) {
  auto dim = forall.getExtents()[extent].getDefiningOp<memref::DimOp>();
  BlockArgument argument =
      isNarrow && dim ? getKernelArgument(dim.getSource()) : BlockArgument();
  if (!argument || !dim.getConstantIndex())
    return {};
  auto kernel = forall->getParentOfType<KernelOp>();
  if (!getKnownSize(kernel, argument.getArgNumber(), *dim.getConstantIndex())
           .isOpenName())
    return {};
  return SizeReciprocalOp::create(b, forall.getLoc(), b.getI64Type(),
                                  dim.getSource(), *dim.getConstantIndex());
}

/// Converts a row number to the grid's indices. Multiplies by the reciprocals
/// of the extents that have one, since divisions would take longer than all
/// other code before the first load.
SmallVector<Value> GridRows::delinearize(Value row) {
  Location loc = forall.getLoc();
  IndexBuilder x(b, loc);
  SmallVector<Value> indices(extents.size());
  for (size_t i = extents.size(); i-- > 1;) {
    Value reciprocal = buildReciprocal(i);
    if (!reciprocal) {
      indices[i] = x.rem(row, extents[i]);
      row = x.div(row, extents[i]);
      continue;
    }
    auto narrow = [&](Value i64) -> Value {
      return arith::TruncIOp::create(b, loc, b.getI32Type(), i64);
    };
    Value bits = arith::ConstantIntOp::create(b, loc, 32, 64);
    Value multiplier = narrow(reciprocal),
          shift = narrow(x.shr(reciprocal, bits));
    auto product = arith::MulUIExtendedOp::create(b, loc, x.shl(row, x.i32(1)),
                                                  multiplier);
    Value quotient = x.shr(product.getHigh(), shift);
    indices[i] = x.sub(row, x.mul(quotient, extents[i]));
    row = quotient;
  }
  if (!extents.empty())
    indices[0] = row;
  return indices;
}

/// Returns the product of `extents` if it is static and a power of two, else
/// nullopt.
static std::optional<int64_t> getPowerOfTwo(ValueRange extents) {
  int64_t size = 1;
  for (Value extent : extents) {
    std::optional<int64_t> value = getConstantIntValue(extent);
    if (!value || llvm::MulOverflow(size, *value, size))
      return std::nullopt;
  }
  return size > 0 && llvm::isPowerOf2_64(size) ? std::optional(size)
                                               : std::nullopt;
}

SmallVector<Value> GridRows::bundledIndicesOf(Value row, Value isBundled,
                                              int64_t bundle) {
  IndexBuilder x(b, forall.getLoc());
  ArrayRef<Value> inner = ArrayRef(extents).drop_front();
  Value whole =
      x.band(extents.front(), constant(-bundle)); // rows in whole bundles
  for (Value extent : inner)
    whole = x.mul(whole, extent);
  Value inBundle = x.band(isBundled, x.ult(row, whole));
  const int64_t bundleBits = llvm::Log2_64(bundle);
  // Every block starts with this computation, so it has to be short. If the
  // product of the inner extents is a power of two, the indices in both orders
  // are computed side by side, and one is selected.
  if (std::optional<int64_t> size =
          getPowerOfTwo(forall.getExtents().drop_front())) {
    const int64_t innerBits = llvm::Log2_64(*size);
    Value last = constant(bundle - 1);
    Value above = x.shr(row, constant(bundleBits));
    Value first = x.shr(row, constant(innerBits));
    Value ofBundle = x.band(first, constant(-bundle)),
          inside = x.band(row, last);
    Value bundled = x.bor(ofBundle, inside);
    SmallVector<Value> indices = {x.select(inBundle, bundled, first)};
    Value rest = x.band(x.select(inBundle, above, row), constant(*size - 1));
    llvm::append_range(indices, x.delinearize(rest, inner));
    return indices;
  }
  Value shift = x.select(inBundle, constant(bundleBits), constant(0));
  Value last = x.select(inBundle, constant(bundle - 1), constant(0));
  SmallVector<Value> indices = delinearize(x.shr(row, shift));
  Value ofBundle = x.shl(indices.front(), shift);
  indices.front() = x.add(ofBundle, x.band(row, last));
  return indices;
}

SmallVector<Value> GridRows::indicesOf(Value row, Value isBundled,
                                       int64_t bundle) {
  SmallVector<Value> indices;
  if (!isBundled || bundle == 1)
    indices = delinearize(row);
  else
    indices = bundledIndicesOf(row, isBundled, bundle);
  for (Value &value : indices)
    value = index(value);
  return indices;
}
