//===- RowLoops.cpp - chooses loops over the packs of a row ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Plan/RowLoops.h"
#include "lib/Transforms/Layout/LongRows.h"
#include "lib/Transforms/Target.h"
#include "mlafix/UnitLimits.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlafix;

/// Returns the approximate number of instructions with which a thread executes
/// `op` on all packs that it has. Most ops take one instruction per element.
/// Other ops take more:
///
///   - A reduction also combines lanes and warps (RowReduce.cpp).
///   - A scan has an operation per element and index bit (RowScan.cpp).
///   - A swap takes two instructions per element (RowSwap.cpp).
///   - A mlafix.load_into that reads single elements computes an address and a
///     predicate for each of them.
static int64_t countInstructions(Operation *op, LayoutAttr layout) {
  DimAttr dim = getTileDim(getTile(op));
  int64_t perPack = layout.packFor(dim), packs = layout.packsFor(dim);
  if (isa<ScanOp>(op))
    perPack *= llvm::Log2_64_Ceil(perPack * layout.getLanes() * packs) + 1;
  if (isa<SwapOp>(op))
    return 2 * packs * perPack;
  if (auto load = dyn_cast<LoadIntoOp>(op); load && !readsPacks(load, perPack))
    return 12 * packs * perPack; // counted in PTX for sm_90
  if (isa<ReduceOp, ScanOp>(op))
    perPack += llvm::Log2_64(std::min(layout.getLanes(), limits::warpThreads)) +
               layout.getLanes() / layout.getBlocks() / limits::warpThreads +
               (layout.isClustered() ? layout.getBlocks() : 0);
  return packs * perPack;
}

/// Returns the length of the longest chain of reductions in `version` of which
/// each depends on the one before, also through memory. A load depends on all
/// stores before it.
static int64_t countStages(KernelOp version) {
  llvm::DenseMap<Operation *, int64_t> stages;
  int64_t longest = 0, stored = 0;
  version.walk([&](Operation *op) {
    int64_t stage = 0;
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp())
        stage = std::max(stage, stages.lookup(def) + isa<ReduceOp>(def));
    std::optional<MemoryAccess> access = getSingleAccess(op);
    if (access && access->isWrite)
      stored = std::max(stored, stage);
    else if (access)
      stage = std::max(stage, stored);
    stages[op] = stage;
    longest = std::max(longest, stage + isa<ReduceOp>(op));
  });
  return longest;
}

/// Returns the most packs of a row that a lane of `version` has.
static int64_t countMostPacks(KernelOp version) {
  LayoutAttr layout = version.getLayoutAttr();
  int64_t most = 0;
  version.walk([&](Operation *op) {
    if (isTileOp(op))
      most = std::max(most, layout.packsFor(getTileDim(getTile(op))));
  });
  return most;
}

/// True if a lane would hold so many packs of a row along a bound, and store
/// them, that it spills: each pack has a predicate.
static bool holdsTooManyPredicates(KernelOp version,
                                   const MachineModel &machine) {
  LayoutAttr layout = version.getLayoutAttr();
  return anyOp(version, [&](Operation *op) {
    if (!isa<StoreOp>(op) || !isTileOp(op))
      return false;
    DimAttr dim = getTileDim(getTile(op));
    return dim.isBounded() && layout.packsFor(dim) > machine.predicatedPacks;
  });
}

bool mlafix::canLoopOverPacks(KernelOp version) {
  return !version.getLayoutAttr().isGrouped() && countMostPacks(version) > 1 &&
         !anyOp(version, [](Operation *op) {
           return isa<scf::WhileOp, scf::ConditionOp>(op) && isTileOp(op);
         });
}

bool mlafix::chooseRowLoops(KernelOp version, const MachineModel &machine) {
  if (!canLoopOverPacks(version))
    return false;
  int64_t packs = countMostPacks(version);
  if (!isGPU(getTarget(version)))
    return packs > machine.loopPacks;
  LayoutAttr layout = version.getLayoutAttr();
  int64_t instructions = 0;
  bool isTooLong = false;
  version.walk([&](Operation *op) {
    if (!isTileOp(op))
      return;
    DimAttr dim = getTileDim(getTile(op));
    instructions += countInstructions(op, layout);
    isTooLong |=
        layout.packsFor(dim) * layout.packFor(dim) > machine.heldElements;
  });
  int64_t atOnce =
      limitPacksAtOnce(packs, machine.loopElements, layout.getPack());
  int64_t inLoops = instructions / packs * atOnce +
                    machine.stageInstructions * countStages(version);
  return isTooLong || holdsTooManyPredicates(version, machine) ||
         (instructions > machine.unrolledInstructions &&
          inLoops < instructions);
}
