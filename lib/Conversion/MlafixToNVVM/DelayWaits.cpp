//===- DelayWaits.cpp - addresses before the wait -------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/Passes.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-delay-waits"

namespace mlafix {
#define GEN_PASS_DEF_DELAYWAITSPASS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlafix

using namespace mlir;

/// Whether `op` is plain arithmetic that may be executed speculatively: a
/// division by zero that a branch guards may not.
static bool isComputableAnywhere(Operation *op) {
  if (op->getNumRegions() || !isPure(op))
    return false;
  if (!isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
           arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp,
           LLVM::SDivOp, LLVM::UDivOp, LLVM::SRemOp, LLVM::URemOp>(op))
    return true;
  APInt divisor;
  return matchPattern(op->getOperand(1), m_ConstantInt(&divisor)) &&
         divisor.isStrictlyPositive();
}

/// The ops behind `value` that come after `wait`, producers first, where what
/// `starts` maps is known. False if one of them is not plain arithmetic.
static bool collectSlice(Value value, Operation *wait, const IRMapping &starts,
                         llvm::SetVector<Operation *> &slice) {
  if (starts.contains(value))
    return true;
  Operation *op = value.getDefiningOp();
  // An argument of the function, or of a loop.
  if (!op)
    return cast<BlockArgument>(value).getOwner()->getParentOp()->isAncestor(
        wait);
  if (slice.contains(op))
    return true;
  Operation *ancestor = wait->getBlock()->findAncestorOpInBlock(*op);
  if (!ancestor) // defined around the wait's block, and so before
    return true;
  if (ancestor != wait && ancestor->isBeforeInBlock(wait))
    return true;
  if (!isComputableAnywhere(op))
    return false;
  for (Value operand : op->getOperands())
    if (!collectSlice(operand, wait, starts, slice))
      return false;
  slice.insert(op);
  return true;
}

/// Moves `value` and what it needs ahead of `wait`, if all of that is plain
/// arithmetic.
static bool moveBeforeWait(Value value, Operation *wait) {
  llvm::SetVector<Operation *> slice;
  if (!collectSlice(value, wait, IRMapping(), slice))
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

/// Both, of which the first may be null. Where it is false, the second may be
/// poison.
static Value both(OpBuilder &b, Value x, Value y) {
  if (!x)
    return y;
  Value no = arith::ConstantIntOp::create(b, y.getLoc(), false, 1);
  return arith::SelectOp::create(b, y.getLoc(), x, y, no);
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

/// The bytes of a pack of a row; 0 if `type` is none.
static int64_t getPackBytes(Type type) {
  constexpr int64_t kLeastBytes = 16;
  auto vector = dyn_cast<VectorType>(type);
  int64_t bytes =
      vector ? vector.getNumElements() * vector.getElementTypeBitWidth() / 8
             : 0;
  return bytes >= kLeastBytes ? bytes : 0;
}

namespace {
/// What is loaded after the wait if both hold (null: always).
struct EarlyLoads {
  Value condition, mask;
  SmallVector<Value> rows;   // pointers to whole packs
  SmallVector<Value> shared; // pointers that are the same in every block
  int64_t rowBytes = 0;      // of all packs, a thread
};

/// Finds the loads after a wait whose pointers and conditions need no memory,
/// and has what they need come ahead of it. Of a loop, those of the first
/// iteration.
class PrefetchCandidates {
public:
  PrefetchCandidates(Operation *wait) : wait(wait) {
    collect(wait->getNextNode(), Value());
  }
  SmallVector<EarlyLoads> loads;

private:
  void collect(Operation *op, Value condition);
  void collectLoad(Value pointer, Type type, Value mask, Value condition);
  void collectLoop(scf::ForOp loop, Value condition);
  Value buildBeforeWait(Value value);
  EarlyLoads &find(Value condition, Value mask);

  Operation *wait;
  IRMapping starts; // of what the loops around count, where they begin
};
} // namespace

/// `value` ahead of the wait, in the first iteration of all loops around; null
/// where that takes memory.
Value PrefetchCandidates::buildBeforeWait(Value value) {
  if (starts.getValueMap().empty())
    return moveBeforeWait(value, wait) ? value : Value();
  llvm::SetVector<Operation *> slice;
  if (!collectSlice(value, wait, starts, slice))
    return Value();
  OpBuilder b(wait);
  for (Operation *op : slice)
    b.clone(*op, starts);
  return starts.lookupOrDefault(value);
}

/// The loads under `condition` and `mask`.
EarlyLoads &PrefetchCandidates::find(Value condition, Value mask) {
  auto found = llvm::find_if(loads, [&](const EarlyLoads &group) {
    return group.condition == condition && group.mask == mask;
  });
  if (found != loads.end())
    return *found;
  loads.push_back({condition, mask, {}, {}, 0});
  return loads.back();
}

void PrefetchCandidates::collectLoad(Value pointer, Type type, Value mask,
                                     Value condition) {
  int64_t bytes = getPackBytes(type);
  if (!isGlobal(pointer) || (!bytes && dependsOnBlock(pointer)))
    return;
  Value early = buildBeforeWait(pointer);
  Value earlyMask = mask && early ? buildBeforeWait(mask) : mask;
  if (!early || (mask && !earlyMask))
    return;
  EarlyLoads &group = find(condition, earlyMask);
  (bytes ? group.rows : group.shared).push_back(early);
  group.rowBytes += bytes;
}

void PrefetchCandidates::collectLoop(scf::ForOp loop, Value condition) {
  Value first = buildBeforeWait(loop.getLowerBound()),
        end = buildBeforeWait(loop.getUpperBound());
  if (!first || !end)
    return;
  OpBuilder b(wait);
  Value iterates = arith::CmpIOp::create(b, loop.getLoc(),
                                         arith::CmpIPredicate::slt, first, end);
  IRMapping around = starts;
  starts.map(loop.getInductionVar(), first);
  collect(&loop.getBody()->front(), both(b, condition, iterates));
  starts = around;
}

void PrefetchCandidates::collect(Operation *op, Value condition) {
  for (; op; op = op->getNextNode()) {
    if (auto load = dyn_cast<LLVM::LoadOp>(op))
      collectLoad(load.getAddr(), load.getType(), Value(), condition);
    else if (auto load = dyn_cast<LLVM::MaskedLoadOp>(op)) {
      if (auto mask = load.getMask().getDefiningOp<vector::BroadcastOp>())
        collectLoad(load.getData(), load.getType(), mask.getSource(),
                    condition);
    } else if (auto loop = dyn_cast<scf::ForOp>(op))
      collectLoop(loop, condition);
    else if (auto branch = dyn_cast<scf::IfOp>(op))
      if (Value taken = buildBeforeWait(branch.getCondition())) {
        OpBuilder b(wait);
        collect(&branch.thenBlock()->front(), both(b, condition, taken));
      }
  }
}

namespace {
class DelayWaitsPass : public mlafix::impl::DelayWaitsPassBase<DelayWaitsPass> {
public:
  void runOnOperation() override {
    SmallVector<NVVM::GriddepcontrolOp> waits;
    getOperation().walk([&](NVVM::GriddepcontrolOp op) {
      if (op.getKind() == NVVM::GridDepActionKind::wait)
        waits.push_back(op);
    });
    for (NVVM::GriddepcontrolOp wait : waits)
      delay(wait);
  }

private:
  void prefetch(NVVM::GriddepcontrolOp wait);
  void delay(NVVM::GriddepcontrolOp wait);
};
} // namespace

/// How many of a grid's first threads prefetch their rows, of so many bytes
/// each: more than memory has time for before the preceding grid ends would be
/// loaded twice. But a grid of a few blocks a multiprocessor prefetches all of
/// its rows, since it takes as long as those blocks that did not.
static int64_t countPrefetchingThreads(const mlafix::MachineModel &machine,
                                       int64_t bytes) {
  return std::max(machine.earlyBytes / bytes, machine.earlyThreads);
}

/// Prefetches ahead of the wait what is loaded after it; what all blocks load,
/// the first one prefetches.
void DelayWaitsPass::prefetch(NVVM::GriddepcontrolOp wait) {
  mlafix::MachineModel machine = mlafix::getMachine(wait);
  SmallVector<EarlyLoads> loads = PrefetchCandidates(wait).loads;
  // Each condition is a branch, all of which a thread goes through.
  bool isTooMany = int64_t(loads.size()) > machine.earlyConditions;
  int64_t bytes = 0;
  for (EarlyLoads &group : loads)
    if (isTooMany && group.mask)
      group.rows.clear();
    else
      bytes += group.rowBytes;
  OpBuilder b(wait);
  Location loc = wait.getLoc();
  Type i32 = b.getI32Type();
  auto isBelow = [&](Value number, int64_t bound) {
    return LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ult, number,
                                LLVM::ConstantOp::create(b, loc, i32, bound));
  };
  auto build = [&](ArrayRef<Value> pointers, Value isEarly,
                   const EarlyLoads &group) {
    for (Value condition : {group.condition, group.mask})
      if (condition)
        isEarly = both(b, isEarly, condition);
    auto branch = scf::IfOp::create(b, loc, isEarly, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
    // LLVM's intrinsic wants a newer PTX ISA than the instruction.
    for (Value pointer : pointers)
      buildAssembly(b, loc, "prefetch.global.L2 [$0];", pointer);
  };
  for (const EarlyLoads &group : loads) {
    LDBG() << "prefetches " << group.rows.size() << " packs of rows and "
           << group.shared.size() << " shared values";
    Value block = NVVM::BlockIdXOp::create(b, loc, i32);
    Value size = NVVM::BlockDimXOp::create(b, loc, i32);
    if (!group.rows.empty())
      build(group.rows,
            isBelow(LLVM::MulOp::create(b, loc, block, size),
                    countPrefetchingThreads(machine, bytes)),
            group);
    if (!group.shared.empty())
      build(group.shared, isBelow(block, 1), group);
  }
}

/// Has the wait come after the arithmetic behind the addresses of what is
/// loaded after it.
void DelayWaitsPass::delay(NVVM::GriddepcontrolOp wait) {
  OpBuilder b(wait);
  Location loc = wait.getLoc();
  Value addresses;
  for (Value pointer : collectPointers(wait)) {
    if (!moveBeforeWait(pointer, wait))
      continue;
    Value address = LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), pointer);
    addresses =
        addresses ? LLVM::OrOp::create(b, loc, addresses, address) : address;
  }
  prefetch(wait);
  if (!addresses)
    return;
  // One of the two is executed, whatever the addresses are.
  buildAssembly(b, loc,
                "{\n\t.reg .pred ready;\n\tsetp.ne.u64 ready, $0, 0;\n\t@ready "
                "griddepcontrol.wait;\n\t@!ready griddepcontrol.wait;\n\t}",
                addresses);
  wait.erase();
}
