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

/// Moves `value` and what it needs ahead of `wait`, if all of that is plain
/// arithmetic.
static bool moveAhead(Value value, Operation *wait) {
  llvm::SetVector<Operation *> slice;
  if (!collectSlice(value, wait, slice))
    return false;
  for (Operation *op : slice)
    op->moveBefore(wait);
  return true;
}

/// Whether `pointer` is one of the arguments' memory: rows may be on a thread's
/// stack, too.
static bool isGlobal(Value pointer) {
  constexpr unsigned kGlobal = 1;
  return cast<LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace() ==
         kGlobal;
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
  llvm::erase_if(pointers, [](Value pointer) { return !isGlobal(pointer); });
  return pointers;
}

/// PTX with one operand that is or may be an address.
static void buildAssembly(OpBuilder &b, Location loc, StringRef text,
                          Value operand) {
  LLVM::InlineAsmOp::create(b, loc, TypeRange(), operand, text, "l,~{memory}",
                            /*has_side_effects=*/true, /*is_align_stack=*/false,
                            LLVM::tailcallkind::TailCallKind::None,
                            LLVM::AsmDialectAttr(), ArrayAttr());
}

namespace {
/// Rows that are loaded after the wait if `condition` holds; null: always.
struct RowLoads {
  Value condition;
  SmallVector<Value> pointers;
};
} // namespace

/// Collects the loads of whole packs among the ops from `op` on whose pointers
/// and conditions need no memory; what they need is moved ahead of the wait.
static void collectRowLoads(Operation *op, Operation *wait, Value condition,
                            SmallVector<RowLoads> &loads) {
  constexpr int64_t kLeastBytes = 16;
  loads.push_back({condition, {}});
  size_t own = loads.size() - 1;
  for (; op; op = op->getNextNode()) {
    if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
      auto vector = dyn_cast<VectorType>(load.getType());
      if (vector &&
          vector.getNumElements() * vector.getElementTypeBitWidth() >=
              8 * kLeastBytes &&
          isGlobal(load.getAddr()) && moveAhead(load.getAddr(), wait))
        loads[own].pointers.push_back(load.getAddr());
    }
    auto branch = dyn_cast<scf::IfOp>(op);
    if (!branch || !moveAhead(branch.getCondition(), wait))
      continue;
    OpBuilder b(wait);
    Value all = branch.getCondition();
    if (condition)
      all = LLVM::AndOp::create(b, branch.getLoc(), condition, all);
    collectRowLoads(&branch.thenBlock()->front(), wait, all, loads);
  }
}

/// Asks the second level cache, ahead of the wait, for rows: there, memory is
/// coherent, so that a line which the grid before has yet to write is none the
/// worse for having been fetched. Threads of later blocks find that grid at its
/// end, and have no time to gain.
static void prefetchRows(NVVM::GriddepcontrolOp wait) {
  constexpr int64_t kFirstThreads = 160 * 2048; // that a GPU holds at once
  SmallVector<RowLoads> loads;
  collectRowLoads(wait->getNextNode(), wait, Value(), loads);
  llvm::erase_if(loads, [](const RowLoads &l) { return l.pointers.empty(); });
  if (loads.empty())
    return;
  OpBuilder b(wait);
  Location loc = wait.getLoc();
  Type i32 = b.getI32Type();
  Value firstThread =
      LLVM::MulOp::create(b, loc, NVVM::BlockIdXOp::create(b, loc, i32),
                          NVVM::BlockDimXOp::create(b, loc, i32));
  Value isEarly = LLVM::ICmpOp::create(
      b, loc, LLVM::ICmpPredicate::ult, firstThread,
      LLVM::ConstantOp::create(b, loc, i32, kFirstThreads));
  for (const RowLoads &group : loads) {
    Value condition =
        group.condition
            ? Value(LLVM::AndOp::create(b, loc, isEarly, group.condition))
            : isEarly;
    auto branch =
        scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
    // LLVM's intrinsic wants a newer PTX ISA than the instruction.
    for (Value pointer : group.pointers)
      buildAssembly(b, loc, "prefetch.global.L2 [$0];", pointer);
  }
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
    if (!moveAhead(pointer, wait))
      continue;
    Value address = LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), pointer);
    addresses =
        addresses ? LLVM::OrOp::create(b, loc, addresses, address) : address;
  }
  if (!addresses)
    return;
  prefetchRows(wait);
  // One of the two is executed, whatever the addresses are.
  buildAssembly(b, loc,
                "{\n\t.reg .pred ready;\n\tsetp.ne.u64 ready, $0, 0;\n\t@ready "
                "griddepcontrol.wait;\n\t@!ready griddepcontrol.wait;\n\t}",
                addresses);
  wait.erase();
}
