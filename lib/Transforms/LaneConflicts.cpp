//===- LaneConflicts.cpp - where the lanes of a row meet ------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/LaneConflicts.h"
#include "lib/Transforms/Target.h"

using namespace mlir;
using namespace mlafix;

std::optional<LaneAccess> mlafix::getLaneAccess(Operation *op) {
  auto access = [](Value memref, Type moved,
                   bool isWrite) -> std::optional<LaneAccess> {
    BlockArgument argument = getKernelArgument(memref);
    if (!argument) // a lane's own buffer
      return std::nullopt;
    return LaneAccess{argument.getArgNumber(),
                      cast<MemRefType>(memref.getType()).getElementType(),
                      isRowTile(moved), isWrite};
  };
  if (auto load = dyn_cast<LoadOp>(op))
    return access(load.getSource(), load.getType(), false);
  if (auto store = dyn_cast<StoreOp>(op))
    return access(store.getTarget(), store.getValue().getType(), true);
  return std::nullopt;
}

bool mlafix::mayConflict(KernelOp kernel, const LaneAccess &a,
                         const LaneAccess &b) {
  bool isOneLane = (a.isTile && b.isTile) ||
                   (a.isWrite && !a.isTile && b.isWrite && !b.isTile);
  if ((!a.isWrite && !b.isWrite) || isOneLane || a.element != b.element)
    return false;
  return a.argument == b.argument ||
         !areGuardedDistinct(kernel.getGuardsAttr(), a.argument, b.argument);
}

/// Whether the row is reduced, or two of its accesses conflict.
static bool
lanesMeet(KernelOp kernel,
          function_ref<bool(const LaneAccess &, const LaneAccess &)> conflict) {
  SmallVector<LaneAccess> accesses;
  bool reduces = false;
  kernel.walk([&](Operation *op) {
    reduces |= isa<ReduceOp>(op);
    if (std::optional<LaneAccess> access = getLaneAccess(op))
      accesses.push_back(*access);
  });
  return reduces || llvm::any_of(accesses, [&](const LaneAccess &a) {
           return llvm::any_of(
               accesses, [&](const LaneAccess &b) { return conflict(a, b); });
         });
}

bool mlafix::lanesMeet(KernelOp kernel) {
  return ::lanesMeet(kernel, [&](const LaneAccess &a, const LaneAccess &b) {
    return mayConflict(kernel, a, b);
  });
}

bool mlafix::lanesMeet(KernelOp kernel, ArrayAttr aliases) {
  return ::lanesMeet(kernel, [&](const LaneAccess &a, const LaneAccess &b) {
    bool canBeOne =
        a.argument == b.argument ||
        llvm::any_of(aliases.getAsRange<ArrayAttr>(), [&](ArrayAttr pair) {
          int64_t first = cast<IntegerAttr>(pair[0]).getInt(),
                  second = cast<IntegerAttr>(pair[1]).getInt();
          return (first == a.argument && second == b.argument) ||
                 (first == b.argument && second == a.argument);
        });
    return canBeOne && mayConflict(kernel, a, b);
  });
}
