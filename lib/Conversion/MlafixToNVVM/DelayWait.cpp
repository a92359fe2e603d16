//===- DelayWait.cpp - addresses before the wait --------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/MlafixToNVVM/DelayWait.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

/// The ops behind `value` that come after `wait`, producers first. False if one
/// of them is not plain arithmetic.
static bool collectSlice(Value value, Operation *wait,
                         llvm::SetVector<Operation *> &slice) {
  Operation *op = value.getDefiningOp();
  if (!op) // an argument of the function, or of a loop
    return isa<LLVM::LLVMFuncOp>(
        cast<BlockArgument>(value).getOwner()->getParentOp());
  Operation *ancestor = wait->getBlock()->findAncestorOpInBlock(*op);
  if (ancestor && ancestor != wait && ancestor->isBeforeInBlock(wait))
    return true;
  if (op->getNumRegions() || !isPure(op))
    return false;
  for (Value operand : op->getOperands())
    if (!collectSlice(operand, wait, slice))
      return false;
  slice.insert(op);
  return true;
}

/// The pointers that are loaded through after `wait`, in no loop.
static SmallVector<Value> collectPointers(Operation *wait) {
  SmallVector<Value> pointers;
  for (Operation *op = wait->getNextNode(); op; op = op->getNextNode())
    op->walk<WalkOrder::PreOrder>([&](Operation *nested) {
      if (auto load = dyn_cast<LLVM::LoadOp>(nested))
        pointers.push_back(load.getAddr());
      else if (auto load = dyn_cast<LLVM::MaskedLoadOp>(nested))
        pointers.push_back(load.getData());
      return nested->getNumRegions() && !isa<scf::IfOp>(nested)
                 ? WalkResult::skip()
                 : WalkResult::advance();
    });
  return pointers;
}

void mlafix::delayWait(LLVM::LLVMFuncOp function) {
  NVVM::GriddepcontrolOp wait;
  function.walk([&](NVVM::GriddepcontrolOp op) {
    if (op.getKind() == NVVM::GridDepActionKind::wait)
      wait = op;
  });
  if (!wait)
    return;
  OpBuilder b(wait);
  Location loc = wait.getLoc();
  Value addresses;
  for (Value pointer : collectPointers(wait)) {
    llvm::SetVector<Operation *> slice;
    if (!collectSlice(pointer, wait, slice))
      continue;
    for (Operation *op : slice)
      op->moveBefore(wait);
    Value address = LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), pointer);
    addresses =
        addresses ? LLVM::OrOp::create(b, loc, addresses, address) : address;
  }
  if (!addresses)
    return;
  // One of the two is executed, whatever the addresses are.
  LLVM::InlineAsmOp::create(
      b, loc, TypeRange(), addresses,
      "{\n\t.reg .pred ready;\n\tsetp.ne.u64 ready, $0, 0;\n\t@ready "
      "griddepcontrol.wait;\n\t@!ready griddepcontrol.wait;\n\t}",
      "l,~{memory}", /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(),
      ArrayAttr());
  wait.erase();
}
