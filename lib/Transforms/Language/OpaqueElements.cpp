//===- OpaqueElements.cpp - elements that are only moved ------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Language/OpaqueElements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlafix;

namespace {
/// Finds all values that hold elements of tensors with the dtype variable.
/// Follows the definitions and the uses of these values.
class OpaqueElements {
public:
  OpaqueElements(KernelOp kernel, StringRef variable)
      : kernel(kernel), variable(variable) {}

  Operation *findOther();
  void retype();

private:
  bool isHere(Value memref) const {
    StringAttr name = getDTypeVariable(memref);
    return name && name.getValue() == variable;
  }
  Operation *collect();
  bool isFilledWithNumber();
  void makeBits(Value value);
  bool followDefinition(Value value);
  bool followUse(OpOperand &use);
  void follow(ValueRange more) { values.insert(more.begin(), more.end()); }

  KernelOp kernel;
  StringRef variable;
  llvm::SetVector<Value> values;
};
} // namespace

/// Returns true if an output is filled with a number other than 0.
bool OpaqueElements::isFilledWithNumber() {
  for (BlockArgument argument : kernel.getBody().getArguments()) {
    Attribute fill = kernel.getArgAttr(argument.getArgNumber(), kFillAttr);
    bool isZero = !fill || isa<StringAttr>(fill) ||
                  matchPattern(fill, m_Zero()) ||
                  matchPattern(fill, m_PosZeroFloat());
    if (!isZero && isHere(argument))
      return true;
  }
  return false;
}

/// Records loads and stores of elements. Returns an op that uses elements in
/// any other way, or the kernel if an output is filled with a number other than
/// 0. Returns null if there is neither.
Operation *OpaqueElements::collect() {
  for (BlockArgument argument : kernel.getBody().getArguments()) {
    if (!isa<MemRefType>(argument.getType()) || !isHere(argument))
      continue;
    for (Operation *op : argument.getUsers())
      if (auto load = dyn_cast<LoadOp>(op))
        values.insert(load);
      else if (auto store = dyn_cast<StoreOp>(op))
        values.insert(store.getValue());
      else if (!isa<memref::DimOp, PresentOp>(op))
        return op;
  }
  return isFilledWithNumber() ? kernel.getOperation() : nullptr;
}

/// Returns true if the op that defines `value` only moves elements. Adds the
/// operands that this op moves to `values`.
bool OpaqueElements::followDefinition(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto load = dyn_cast_if_present<LoadOp>(op)) {
    if (load.getOther())
      values.insert(load.getOther());
    return isHere(load.getSource());
  }
  if (isa_and_present<SplatOp, BroadcastOp>(op)) {
    follow(op->getOperands());
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
  return matchPattern(value, m_Zero()) || matchPattern(value, m_PosZeroFloat());
}

/// Returns true if `use` only moves an element. Adds the results to which it
/// moves the element to `values`.
bool OpaqueElements::followUse(OpOperand &use) {
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

Operation *OpaqueElements::findOther() {
  if (Operation *other = collect())
    return other;
  for (size_t i = 0; i < values.size(); ++i) {
    Value value = values[i];
    Operation *definition = value.getDefiningOp();
    if (!followDefinition(value))
      return definition ? definition : value.getParentBlock()->getParentOp();
    if (matchPattern(value, m_Constant()))
      continue; // This zero may have uses that are not elements.
    for (OpOperand &use : value.getUses())
      if (!followUse(use))
        return use.getOwner();
  }
  return nullptr;
}

/// Changes the type of `value`, an f32 or a row of f32, to i64 or a row of i64,
/// which hold the bits of elements.
void OpaqueElements::makeBits(Value value) {
  Type bits = IntegerType::get(kernel.getContext(), 64);
  Type type = value.getType();
  if (isRowTile(type))
    bits = getRowTileType(getTileDim(type), bits);
  if (!matchPattern(value, m_Constant()))
    return value.setType(bits);
  // Replace the zero only where it is an element, since other ops may use it,
  // too.
  OpBuilder b(value.getDefiningOp());
  TypedAttr zero = b.getZeroAttr(bits);
  Value made = arith::ConstantOp::create(b, value.getLoc(), zero);
  value.replaceUsesWithIf(made, [&](OpOperand &use) {
    Operation *op = use.getOwner();
    if (auto store = dyn_cast<StoreOp>(op))
      return isHere(store.getTarget());
    if (auto load = dyn_cast<LoadOp>(op))
      return isHere(load.getSource());
    if (isa<scf::YieldOp>(op) && isa<scf::IfOp>(op->getParentOp()))
      return values.contains(
          op->getParentOp()->getResult(use.getOperandNumber()));
    return op->getNumResults() == 1 && values.contains(op->getResult(0));
  });
}

/// Changes the types of all traced values. findOther() must have returned null.
void OpaqueElements::retype() {
  for (Value value : values)
    makeBits(value);
  for (BlockArgument argument : kernel.getBody().getArguments()) {
    Attribute fill = kernel.getArgAttr(argument.getArgNumber(), kFillAttr);
    if (isa_and_present<FloatAttr>(fill) && isHere(argument))
      kernel.setArgAttr(argument.getArgNumber(), kFillAttr,
                        Builder(kernel.getContext()).getI64IntegerAttr(0));
  }
}

void mlafix::moveAsBits(KernelOp kernel, StringRef variable) {
  OpaqueElements elements(kernel, variable);
  if (!elements.findOther())
    elements.retype();
}

Operation *mlafix::findUseAsNumber(KernelOp kernel, StringRef variable) {
  return OpaqueElements(kernel, variable).findOther();
}
