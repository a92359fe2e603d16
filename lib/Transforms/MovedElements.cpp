//===- MovedElements.cpp - elements that are not computed with ------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/MovedElements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlafix;

namespace {
/// Follows values that are elements of the variable, both ways.
class MovedElements {
public:
  MovedElements(KernelOp kernel, StringRef variable)
      : kernel(kernel), variable(variable) {}

  Operation *findOther();

private:
  bool isHere(Value memref) const {
    StringAttr name = getDTypeVariable(memref);
    return name && name.getValue() == variable;
  }
  void collect();
  bool followDefinition(Value value);
  bool followUse(OpOperand &use);
  void follow(ValueRange more) { values.insert(more.begin(), more.end()); }

  KernelOp kernel;
  StringRef variable;
  llvm::SetVector<Value> values;
};
} // namespace

void MovedElements::collect() {
  kernel.walk([&](Operation *op) {
    if (auto load = dyn_cast<LoadOp>(op); load && isHere(load.getSource()))
      values.insert(load);
    if (auto store = dyn_cast<StoreOp>(op); store && isHere(store.getTarget()))
      values.insert(store.getValue());
  });
}

/// Whether what makes `value` moves elements; those it moves are next.
bool MovedElements::followDefinition(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto load = dyn_cast_if_present<LoadOp>(op)) {
    if (load.getOther())
      values.insert(load.getOther());
    return isHere(load.getSource());
  }
  if (auto splat = dyn_cast_if_present<SplatOp>(op)) {
    values.insert(splat.getScalar());
    return true;
  }
  if (auto broadcast = dyn_cast_if_present<BroadcastOp>(op)) {
    values.insert(broadcast.getSource());
    return true;
  }
  if (auto select = dyn_cast_if_present<arith::SelectOp>(op)) {
    follow({select.getTrueValue(), select.getFalseValue()});
    return true;
  }
  if (auto branch = dyn_cast_if_present<scf::IfOp>(op)) {
    unsigned result = cast<OpResult>(value).getResultNumber();
    follow({branch.thenYield().getOperand(result),
            branch.elseYield().getOperand(result)});
    return true;
  }
  return matchPattern(value, m_Zero());
}

/// Whether `use` moves an element; where to is next.
bool MovedElements::followUse(OpOperand &use) {
  Operation *op = use.getOwner();
  if (auto store = dyn_cast<StoreOp>(op))
    return isHere(store.getTarget());
  if (auto load = dyn_cast<LoadOp>(op))
    return isHere(load.getSource());
  if (isa<SplatOp, BroadcastOp>(op)) {
    follow(op->getResults());
    return true;
  }
  if (isa<arith::SelectOp>(op)) {
    follow(op->getResults());
    return use.getOperandNumber() != 0;
  }
  auto yield = dyn_cast<scf::YieldOp>(op);
  if (!yield || !isa<scf::IfOp>(op->getParentOp()))
    return false;
  values.insert(op->getParentOp()->getResult(use.getOperandNumber()));
  return true;
}

Operation *MovedElements::findOther() {
  collect();
  for (size_t i = 0; i < values.size(); ++i) {
    Value value = values[i];
    Operation *definition = value.getDefiningOp();
    if (!followDefinition(value))
      return definition ? definition : value.getParentBlock()->getParentOp();
    if (matchPattern(value, m_Constant()))
      continue; // others may use the same zero
    for (OpOperand &use : value.getUses())
      if (!followUse(use))
        return use.getOwner();
  }
  return nullptr;
}

Operation *mlafix::findUseAsNumber(KernelOp kernel, StringRef variable) {
  return MovedElements(kernel, variable).findOther();
}
