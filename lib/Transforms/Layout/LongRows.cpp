//===- LongRows.cpp - rows that are processed in loops --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Layout/LongRows.h"
#include "lib/Transforms/Target.h"
#include "mlafix/UnitLimits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlafix;

bool mlafix::isTileOp(Operation *op) {
  return llvm::any_of(op->getOperandTypes(), isRowTile) ||
         llvm::any_of(op->getResultTypes(), isRowTile);
}

Type mlafix::getTile(Operation *op) {
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return broadcast.getType();
  for (Type type :
       llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
    if (isRowTile(type))
      return type;
  return {};
}

int64_t mlafix::getRowBytes(Type tile, Type element) {
  return getTileDim(tile).getSize() * getDTypeBits(element) / 8;
}

bool mlafix::isUniform(Operation *op) {
  return isa<SplatOp, arith::ConstantOp>(op);
}

bool mlafix::readsPacks(LoadIntoOp load, int64_t elements) {
  MemoryAccess access = load.getAccesses().front();
  int64_t size = access.slice ? access.slice->end - access.slice->begin
                              : access.getRowDim().getSize();
  int64_t each = load.getEach();
  return (access.slice || !access.getRowDim().isBounded()) &&
         load.getFirst() % elements == 0 && elements % each == 0 &&
         size % (elements / each) == 0;
}

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

int64_t mlafix::getMostKept(KernelOp kernel) {
  MachineModel machine = getMachine(kernel);
  return isGPU(getTarget(kernel)) ? machine.heldElements : machine.keptElements;
}

bool mlafix::isTooLongToKeep(KernelOp kernel, Type tile) {
  LayoutAttr layout = kernel.getLayoutAttr();
  DimAttr dim = getTileDim(tile);
  return layout.packsFor(dim) * layout.packFor(dim) > getMostKept(kernel);
}

bool mlafix::walksRows(KernelOp kernel) {
  MachineModel machine = getMachine(kernel);
  LayoutAttr layout = kernel.getLayoutAttr();
  // With lane groups, a lane has only few packs of a row, which stay unrolled.
  if (layout.isGrouped())
    return false;
  int64_t packs = 0, instructions = 0;
  // The stage of an op is the length of the longest chain of reductions on
  // which it depends, also through memory. A load depends on all stores before
  // it.
  llvm::DenseMap<Operation *, int64_t> stages;
  int64_t longest = 0, stored = 0;
  // False if scf.while carries rows, which then stay unrolled.
  bool isStructured = true;
  bool isTooLong = false;
  kernel.walk([&](Operation *op) {
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
    if (!isTileOp(op))
      return;
    isStructured &= !isa<scf::WhileOp, scf::ConditionOp>(op);
    packs = std::max(packs, layout.packsFor(getTileDim(getTile(op))));
    instructions += countInstructions(op, layout);
    isTooLong |= isTooLongToKeep(kernel, getTile(op));
  });
  if (!isGPU(getTarget(kernel)))
    return isStructured && packs > machine.loopPacks;
  if (!isStructured || packs <= 1)
    return false;
  bool isShorter =
      instructions / packs + machine.stageInstructions * longest < instructions;
  return isTooLong ||
         (isShorter && instructions > machine.unrolledInstructions);
}
