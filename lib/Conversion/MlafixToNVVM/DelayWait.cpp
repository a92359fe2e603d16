//===- DelayWait.cpp - addresses before the wait --------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/MlafixToNVVM/DelayWait.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

/// The ops behind `value` that come after `wait`, producers first. False if one
/// of them is not plain arithmetic.
static bool collectSlice(Value value, Operation *wait,
                         llvm::SetVector<Operation *> &slice) {
  Operation *op = value.getDefiningOp();
  // An argument of the function, or of a loop.
  if (!op)
    return cast<BlockArgument>(value).getOwner()->getParentOp()->isAncestor(
        wait);
  Operation *ancestor = wait->getBlock()->findAncestorOpInBlock(*op);
  if (!ancestor) // defined around the wait's block, and so before
    return true;
  if (ancestor != wait && ancestor->isBeforeInBlock(wait))
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

/// Whether `value` is computed from the number of the block; not by way of what
/// is in `seen`.
static bool dependsOnBlock(Value value, llvm::SmallPtrSetImpl<void *> &seen) {
  if (!seen.insert(value.getAsOpaquePointer()).second)
    return false;
  Operation *op = value.getDefiningOp();
  if (!op) { // of a loop: what it counts, but nothing that it carries
    auto argument = cast<BlockArgument>(value);
    Operation *parent = argument.getOwner()->getParentOp();
    auto loop = dyn_cast<scf::ForOp>(parent);
    return !isa<LLVM::LLVMFuncOp>(parent) &&
           (!loop || value != loop.getInductionVar() ||
            dependsOnBlock(loop.getLowerBound(), seen) ||
            dependsOnBlock(loop.getStep(), seen));
  }
  return isa<NVVM::BlockIdXOp>(op) ||
         llvm::any_of(op->getOperands(), [&](Value operand) {
           return dependsOnBlock(operand, seen);
         });
}

static bool dependsOnBlock(Value value) {
  llvm::SmallPtrSet<void *, 16> seen;
  return dependsOnBlock(value, seen);
}

namespace {
/// What is loaded after the wait if both hold (null: always).
struct EarlyLoads {
  Value condition, mask;
  SmallVector<Value> rows;   // pointers to whole packs
  SmallVector<Value> shared; // pointers that are the same in every block
};
} // namespace

/// The loads under `condition` and `mask`.
static EarlyLoads &findLoads(SmallVectorImpl<EarlyLoads> &loads,
                             Value condition, Value mask) {
  auto found = llvm::find_if(loads, [&](const EarlyLoads &group) {
    return group.condition == condition && group.mask == mask;
  });
  if (found != loads.end())
    return *found;
  loads.push_back({condition, mask, {}, {}});
  return loads.back();
}

/// Collects the loads among the ops from `op` on whose pointers and conditions
/// need no memory; what they need is moved ahead of the wait.
static void collectEarlyLoads(Operation *op, Operation *wait, Value condition,
                              SmallVector<EarlyLoads> &loads) {
  constexpr int64_t kLeastBytes = 16;
  for (; op; op = op->getNextNode()) {
    if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
      Value pointer = load.getAddr();
      auto vector = dyn_cast<VectorType>(load.getType());
      bool isRow =
          vector && vector.getNumElements() * vector.getElementTypeBitWidth() >=
                        8 * kLeastBytes;
      if (isGlobal(pointer) && (isRow || !dependsOnBlock(pointer)) &&
          moveAhead(pointer, wait)) {
        EarlyLoads &group = findLoads(loads, condition, Value());
        (isRow ? group.rows : group.shared).push_back(pointer);
      }
    } else if (auto load = dyn_cast<LLVM::MaskedLoadOp>(op)) {
      // Rows are not asked for under a mask: that took 6% longer.
      Value pointer = load.getData();
      auto mask = load.getMask().getDefiningOp<vector::BroadcastOp>();
      if (mask && isGlobal(pointer) && !dependsOnBlock(pointer) &&
          moveAhead(pointer, wait) && moveAhead(mask.getSource(), wait))
        findLoads(loads, condition, mask.getSource()).shared.push_back(pointer);
    }
    auto branch = dyn_cast<scf::IfOp>(op);
    if (!branch || !moveAhead(branch.getCondition(), wait))
      continue;
    OpBuilder b(wait);
    Value all = branch.getCondition();
    if (condition)
      all = LLVM::AndOp::create(b, branch.getLoc(), condition, all);
    collectEarlyLoads(&branch.thenBlock()->front(), wait, all, loads);
  }
}

/// Asks the second level cache, ahead of the wait, for what is loaded after it:
/// there, memory is coherent, so that a line which the grid before has yet to
/// write is none the worse for having been fetched. Threads of later blocks
/// find that grid at its end, and have no time to gain. What all blocks load,
/// the first one asks for.
static void prefetch(NVVM::GriddepcontrolOp wait) {
  constexpr int64_t kFirstThreads = 160 * 2048; // that a GPU holds at once
  SmallVector<EarlyLoads> loads;
  collectEarlyLoads(wait->getNextNode(), wait, Value(), loads);
  OpBuilder b(wait);
  Location loc = wait.getLoc();
  Type i32 = b.getI32Type();
  auto isBelow = [&](Value number, int64_t bound) {
    return LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ult, number,
                                LLVM::ConstantOp::create(b, loc, i32, bound));
  };
  auto ask = [&](ArrayRef<Value> pointers, Value isEarly,
                 const EarlyLoads &group) {
    for (Value condition : {group.condition, group.mask})
      if (condition)
        isEarly = LLVM::AndOp::create(b, loc, isEarly, condition);
    auto branch = scf::IfOp::create(b, loc, isEarly, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
    // LLVM's intrinsic wants a newer PTX ISA than the instruction.
    for (Value pointer : pointers)
      buildAssembly(b, loc, "prefetch.global.L2 [$0];", pointer);
  };
  for (const EarlyLoads &group : loads) {
    Value block = NVVM::BlockIdXOp::create(b, loc, i32);
    Value size = NVVM::BlockDimXOp::create(b, loc, i32);
    if (!group.rows.empty())
      ask(group.rows,
          isBelow(LLVM::MulOp::create(b, loc, block, size), kFirstThreads),
          group);
    if (!group.shared.empty())
      ask(group.shared, isBelow(block, 1), group);
  }
}

/// Has the wait come after the arithmetic behind the addresses of what is
/// loaded after it.
static void delay(NVVM::GriddepcontrolOp wait) {
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
  prefetch(wait);
  // One of the two is executed, whatever the addresses are.
  buildAssembly(b, loc,
                "{\n\t.reg .pred ready;\n\tsetp.ne.u64 ready, $0, 0;\n\t@ready "
                "griddepcontrol.wait;\n\t@!ready griddepcontrol.wait;\n\t}",
                addresses);
  wait.erase();
}

void mlafix::delayWaits(LLVM::LLVMFuncOp function) {
  SmallVector<NVVM::GriddepcontrolOp> waits;
  function.walk([&](NVVM::GriddepcontrolOp op) {
    if (op.getKind() == NVVM::GridDepActionKind::wait)
      waits.push_back(op);
  });
  llvm::for_each(waits, delay);
}
