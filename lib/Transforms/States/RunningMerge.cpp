//===- RunningMerge.cpp - loops that merge into one state -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/States/RunningMerge.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlafix;

bool mlafix::isInRepair(Operation *op) {
  auto branch = op->getParentOfType<scf::IfOp>();
  return branch && (!branch.thenBlock()->getOps<RepairOp>().empty() ||
                    isInRepair(branch));
}

MergeOp mlafix::getRunningMerge(scf::ForOp loop, StringRef &reason) {
  if (loop.getNumRegionIterArgs() != 1 ||
      !isa<StateType>(loop.getRegionIterArg(0).getType())) {
    reason = "it carries other values than one state";
    return {};
  }
  BlockArgument running = loop.getRegionIterArg(0);
  auto merge =
      loop.getBody()->getTerminator()->getOperand(0).getDefiningOp<MergeOp>();
  if (!merge || merge->getParentOp() != loop || !running.hasOneUse() ||
      *running.getUsers().begin() != merge || merge.getStates().size() < 2 ||
      !merge->hasOneUse()) {
    reason = "it does more than merge into the state that it carries";
    return {};
  }
  for (Operation &op : loop.getBody()->without_terminator())
    if (op.getNumRegions() || !(isPure(&op) || isa<LoadOp, LoadStateOp>(op))) {
      reason = "its body stores or branches";
      return {};
    }
  return merge;
}

MergeOp mlafix::getChunkedMerge(scf::ForOp loop, StringRef &reason) {
  if (!isa<ForallOp>(loop->getParentOp())) {
    reason = "it is not at the top of a dense grid's body";
    return {};
  }
  std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound());
  if (!lower || *lower < 0 || getConstantIntValue(loop.getStep()) != 1 ||
      !isKnownAtLaunch(loop.getUpperBound())) {
    reason = "a launch does not know how often it runs";
    return {};
  }
  return getRunningMerge(loop, reason);
}

/// Implements isKnownWithoutRows() of RunningMerge.h. Ops in `known` have been
/// visited before.
static bool isKnownWithoutRows(Value value, function_ref<bool(Value)> isInLoop,
                               StringRef &reason,
                               llvm::SmallPtrSetImpl<Operation *> &known) {
  auto refuse = [&](StringRef why) {
    reason = why;
    return false;
  };
  if (!isInLoop(value))
    return true;
  if (isa<BlockArgument>(value))
    return !isa<StateType>(value.getType()) ||
           refuse("a state is carried by another loop");
  Operation *op = value.getDefiningOp();
  if (!known.insert(op).second)
    return true;
  if (auto made = dyn_cast<MakeStateOp>(op))
    return isKnownWithoutRows(made.getLse(), isInLoop, reason, known);
  bool isState = isa<StateType>(value.getType());
  if (isState &&
      !isa<LoadStateOp, IdentityOp, MaskOp, RebaseOp, arith::SelectOp>(op))
    return refuse("a merged state is used again, or made in a branch");
  WalkResult walk = op->walk([&](Operation *nested) {
    for (Value operand : nested->getOperands()) {
      bool isRow = isRowTile(operand.getType()) ||
                   (isa<StateType>(operand.getType()) && !isState);
      if (isRow)
        refuse("an lse of the merge is computed from rows");
      bool isInside = op->isAncestor(operand.getParentRegion()->getParentOp());
      if (isRow ||
          (!isInside && !isKnownWithoutRows(operand, isInLoop, reason, known)))
        return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return !walk.wasInterrupted();
}

bool mlafix::isKnownWithoutRows(Value value, function_ref<bool(Value)> isInLoop,
                                StringRef &reason) {
  llvm::SmallPtrSet<Operation *, 16> known;
  return ::isKnownWithoutRows(value, isInLoop, reason, known);
}

/// Returns the length in elements of the longest row that an iteration of
/// `loop` loads.
static int64_t getMostElements(scf::ForOp loop) {
  int64_t most = 0;
  for (auto op : loop.getBody()->getOps<MemoryAccessOpInterface>())
    for (const MemoryAccess &access : op.getAccesses())
      if (access.isRow && !access.isWrite)
        most = std::max(
            most, cast<MemRefType>(access.memref.getType()).getShape().back());
  return most;
}

bool mlafix::isWeighedOnce(scf::ForOp loop, const MachineModel &machine) {
  StringRef reason;
  MergeOp merge =
      isLeftToUnroll(loop, machine) ? MergeOp() : getChunkedMerge(loop, reason);
  auto isInLoop = [&](Value value) {
    return loop->isAncestor(value.getParentRegion()->getParentOp());
  };
  return merge && getMostElements(loop) >= machine.weighedOnceElements &&
         llvm::all_of(merge.getStates(), [&](Value state) {
           return state == loop.getRegionIterArg(0) ||
                  isKnownWithoutRows(state, isInLoop, reason);
         });
}

IRMapping mlafix::cloneIteration(OpBuilder &b, scf::ForOp loop, MergeOp merge,
                                 Value index, Value exists) {
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), index);
  auto restrict = [&](Operation *op, MutableOperandRange predicate) {
    Value both = exists;
    if (!predicate.empty())
      both = arith::AndIOp::create(b, op->getLoc(), predicate[0].get(), exists);
    predicate.assign(both);
  };
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (&op == merge)
      continue;
    Operation *copy = b.clone(op, mapping);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(copy);
    if (auto load = dyn_cast<LoadStateOp>(copy))
      restrict(load, load.getPredicateMutable());
    else if (auto load = dyn_cast<LoadOp>(copy))
      restrict(load, load.getPredicateMutable());
  }
  return mapping;
}

void mlafix::setUnrolling(scf::ForOp loop, LLVM::LoopUnrollAttr how) {
  // MLIR's conversions move the attribute to the branch at the end of the loop.
  loop->setAttr("loop_annotation", LLVM::LoopAnnotationAttr::get(
                                       loop.getContext(), {}, {}, {}, how, {},
                                       {}, {}, {}, {}, {}, {}, {}, {}, {}, {}));
}

uint64_t mlafix::countOps(scf::ForOp loop) {
  uint64_t count = 0;
  loop.getBody()->walk([&](Operation *) { ++count; });
  return count;
}

bool mlafix::isLeftToUnroll(scf::ForOp loop, const MachineModel &machine) {
  std::optional<APInt> trips = loop.getStaticTripCount();
  return trips && trips->ule(machine.unchunkedIterations) &&
         trips->getSExtValue() * countRowBytes(loop) <= machine.unchunkedBytes;
}

bool mlafix::isUnrolledWhole(scf::ForOp loop, const MachineModel &machine) {
  std::optional<APInt> trips = loop.getStaticTripCount();
  return trips && trips->ule(machine.unrollWhole) &&
         isLeftToUnroll(loop, machine) &&
         countOps(loop) * trips->getZExtValue() <=
             static_cast<uint64_t>(machine.unrolledOperations);
}

int64_t mlafix::countRowBytes(scf::ForOp loop) {
  int64_t bytes = 0;
  for (auto op : loop.getBody()->getOps<MemoryAccessOpInterface>())
    for (const MemoryAccess &access : op.getAccesses()) {
      auto type = cast<MemRefType>(access.memref.getType());
      if (access.isRow && !access.isWrite &&
          !type.isDynamicDim(type.getRank() - 1))
        bytes +=
            type.getShape().back() * getDTypeBits(access.getElementType()) / 8;
    }
  return bytes;
}
