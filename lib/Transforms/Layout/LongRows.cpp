//===- LongRows.cpp - rows that are processed in loops --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Layout/LongRows.h"
#include "dialect/Plan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

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

int64_t mlafix::getMostKept(KernelOp kernel) {
  return getPlanned(kernel, PlanField::KeptElements);
}

bool mlafix::isTooLongToKeep(KernelOp kernel, Type tile) {
  LayoutAttr layout = kernel.getLayoutAttr();
  DimAttr dim = getTileDim(tile);
  return layout.packsFor(dim) * layout.packFor(dim) > getMostKept(kernel);
}

int64_t mlafix::countPacksAtOnce(KernelOp kernel, DimAttr dim) {
  LayoutAttr layout = kernel.getLayoutAttr();
  if (dim.isPerGroup() || dim.isProduct())
    return 1;
  int64_t packs = layout.packsFor(dim);
  int64_t atOnce = limitPacksAtOnce(
      packs, getPlanned(kernel, PlanField::LoopElements), layout.packFor(dim));
  int64_t spare = layout.isInParts() ? 0 : packs / 8;
  while (static_cast<int64_t>(llvm::alignTo(packs, atOnce)) - packs > spare)
    atOnce /= 2;
  return atOnce;
}

int64_t mlafix::limitPacksAtOnce(int64_t packs, int64_t elements,
                                 int64_t pack) {
  return llvm::bit_floor<uint64_t>(
      std::max<int64_t>(1, std::min(elements / pack, packs / 4)));
}
