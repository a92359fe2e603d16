//===- RowLayout.cpp - distribution of a row over lanes -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Layout/RowLayout.h"
#include "dialect/MlafixThread.h"
#include "lib/Transforms/AccessPredicate.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlafix;

RowLayout::RowLayout(KernelOp kernel)
    : kernel(kernel), layout(kernel.getLayoutAttr()),
      guards(kernel.getGuardsAttr()), isGPU(mlafix::isGPU(getTarget(kernel))) {
  kernel.walk([&](RowOp row) {
    lane = row.getLane();
    mask = row.getMask();
    hasWholeWarps = row.getWholeWarps();
  });
}

Value RowLayout::maskAt(OpBuilder &b, Operation *op) const {
  return hasWholeWarps && isa<RowOp>(op->getParentOp())
             ? IndexBuilder(b, op->getLoc()).i32(-1)
             : mask;
}

/// Each group of a product is padded to a number of packs that is a power of
/// two. Returns the resulting distance in elements from the start of one group
/// to the start of the next. Returns 0 if groups need no padding.
static int64_t paddedGroup(DimAttr dim, int64_t pack) {
  if (!dim.isProduct())
    return 0;
  int64_t padded = dim.getGroupPacks(pack) * dim.getPack(pack);
  return padded == dim.getGroup().getSize() ? 0 : padded;
}

/// Builds the position of this lane's pack in a row with padded groups. `place`
/// is the number of elements before the pack, including padding.
PackPosition RowLayout::positionInGroups(OpBuilder &b, Location loc,
                                         DimAttr dim, Value place) const {
  IndexBuilder x(b, loc);
  int64_t group = dim.getGroup().getSize();
  Value padded = x.constant(paddedGroup(dim, layout.getPack()));
  Value before = x.div(place, padded), within = x.rem(place, padded);
  PackPosition result;
  result.start = x.add(x.mul(before, x.constant(group)), within);
  result.exists = x.ult(within, x.constant(group));
  if (dim.getPacks(layout.getPack()) % layout.getLanes() == 0)
    return result;
  Value isGroup = x.ult(before, x.constant(dim.getGroups().getSize()));
  result.exists = x.band(isGroup, result.exists);
  return result;
}

/// Builds the position in a row with one element per group. `pack` is the index
/// of this lane's pack.
PackPosition RowLayout::positionOfElement(OpBuilder &b, Location loc,
                                          DimAttr dim, Value pack) const {
  IndexBuilder x(b, loc);
  int64_t lanes = layout.getLanes();
  PackPosition result;
  auto isZero = [&](Value value) {
    return x.compare(arith::CmpIPredicate::eq, value, x.constant(0));
  };
  if (layout.sharesGroups(dim)) {
    result.start = pack;
    if (lane)
      result.stores = isZero(lane);
    return result;
  }
  int64_t group = dim.getGroupPacks(layout.getPack());
  Value slot = x.add(x.mul(pack, x.constant(lanes)), lane);
  result.start = x.div(slot, x.constant(group));
  if (dim.getPacks(layout.getPack()) % lanes != 0)
    result.exists = x.ult(slot, x.constant(dim.getPacks(layout.getPack())));
  if (group > 1)
    result.stores = isZero(x.rem(slot, x.constant(group)));
  return result;
}

/// Builds the position of this lane's pack in the step of a walk that starts at
/// `base`. `isInside` is true if every lane has a pack in this step, apart from
/// the padding of groups.
PackPosition RowLayout::positionFrom(OpBuilder &b, Location loc, DimAttr dim,
                                     Value base, bool isInside) const {
  if (dim.isPerGroup())
    return positionOfElement(b, loc, dim, base);
  IndexBuilder x(b, loc);
  PackPosition place;
  place.start =
      lane ? x.add(x.mul(lane, x.constant(layout.packFor(dim))), base) : base;
  if (paddedGroup(dim, layout.getPack()))
    return positionInGroups(b, loc, dim, place.start);
  if (dim.isBounded())
    place.exists = x.ult(place.start, buildRowSize(b, loc, kernel, dim));
  else if (!isInside)
    place.exists = x.ult(place.start, x.constant(dim.getSize()));
  return place;
}

PackPosition RowLayout::positionOf(OpBuilder &b, Location loc, Type tile,
                                   int64_t p) const {
  DimAttr dim = getTileDim(tile);
  int64_t base = p * walkStep(tile);
  return positionFrom(b, loc, dim, IndexBuilder(b, loc).constant(base),
                      beforeLastPart(dim) + base + walkStep(tile) <=
                          dim.getSize());
}

int64_t RowLayout::walkEnd(Type tile) const {
  DimAttr dim = getTileDim(tile);
  if (dim.isPerGroup())
    return packsOf(tile);
  if (layout.isInParts())
    return packsOf(tile) * walkStep(tile);
  int64_t padded = paddedGroup(dim, layout.getPack());
  return padded ? padded * dim.getGroups().getSize() : dim.getSize();
}

int64_t RowLayout::walkStep(Type tile) const {
  return getTileDim(tile).isPerGroup() ? 1 : layout.getLanes() * packOf(tile);
}

PackPosition RowLayout::positionAt(OpBuilder &b, Location loc, Type tile,
                                   Value base, int64_t atOnce) const {
  DimAttr dim = getTileDim(tile);
  bool isInside = layout.isInParts()
                      ? beforeLastPart(dim) + walkEnd(tile) <= dim.getSize()
                      : dim.getSize() % (atOnce * walkStep(tile)) == 0;
  return positionFrom(b, loc, dim, base, isInside);
}
