//===- PairedRows.cpp - rows of bf16 as words of two elements -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/MlafixToCPU/PairedRows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;
using namespace mlafix;

/// Whether all elements are one value, which no order changes.
static bool isSplat(Value value) {
  if (auto broadcast = value.getDefiningOp<vector::BroadcastOp>())
    return !isa<VectorType>(broadcast.getSource().getType());
  DenseElementsAttr constant;
  return matchPattern(value, m_Constant(&constant)) && constant.isSplat();
}

static bool isWidening(Operation *op) {
  return isa<arith::ExtFOp>(op) &&
         getElementTypeOrSelf(op->getOperand(0).getType()).isBF16();
}

static bool isNarrowing(Operation *op) {
  return isa<arith::TruncFOp>(op) &&
         getElementTypeOrSelf(op->getResult(0).getType()).isBF16();
}

/// One dimension, of whole pairs.
static bool isOfPairs(Value value) {
  auto type = dyn_cast<VectorType>(value.getType());
  return type && type.getRank() == 1 && type.getNumElements() % 2 == 0;
}

Conversions mlafix::findPairedConversions(LLVM::LLVMFuncOp function) {
  // Vectors that elementwise ops tie to each other have one order, and that is
  // the order in memory if any of them is used otherwise.
  llvm::EquivalenceClasses<void *> classes;
  llvm::SmallVector<void *> inOrder;
  SmallVector<Operation *> conversions;
  auto idOf = [](Value value) { return value.getAsOpaquePointer(); };
  function.walk([&](Operation *op) {
    bool widens = isWidening(op), narrows = isNarrowing(op);
    bool isElementwise = OpTrait::hasElementwiseMappableTraits(op);
    if (widens || narrows)
      conversions.push_back(op);
    // What a loop carries is also what an iteration before left there.
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        if (isa<VectorType>(argument.getType())) {
          classes.insert(idOf(argument));
          inOrder.push_back(idOf(argument));
        }
    void *first = nullptr;
    auto visit = [&](Value value) {
      if (!isa<VectorType>(value.getType()) || isSplat(value))
        return;
      void *id = idOf(value);
      classes.insert(id);
      if (!isElementwise || !isOfPairs(value))
        inOrder.push_back(id);
      if (first)
        classes.unionSets(first, id);
      else
        first = id;
    };
    // In bf16 the order is that in memory.
    if (!widens)
      llvm::for_each(op->getOperands(), visit);
    if (!narrows)
      llvm::for_each(op->getResults(), visit);
  });

  llvm::SmallPtrSet<void *, 16> ordered;
  for (void *id : inOrder)
    ordered.insert(classes.getLeaderValue(id));
  Conversions paired;
  for (Operation *op : conversions) {
    Value wide = isWidening(op) ? op->getResult(0) : op->getOperand(0);
    if (isOfPairs(wide) && !isSplat(wide) &&
        !ordered.contains(classes.getLeaderValue(idOf(wide))))
      paired.insert(op);
  }
  return paired;
}
