//===- RunningMerge.cpp - loops that merge into one state -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/States/RunningMerge.h"
#include "dialect/Extents.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlafix;

bool mlafix::isInRepair(Operation *op) {
  auto branch = op->getParentOfType<scf::IfOp>();
  return branch && (branch->hasAttr(kRepairAttr) || isInRepair(branch));
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

/// True if what `loop` computes of `value`, a state's lse or a number, needs no
/// rows.
static bool needsNoRows(scf::ForOp loop, Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !loop->isProperAncestor(op))
    return value != loop.getRegionIterArg(0);
  if (auto made = dyn_cast<MakeStateOp>(op))
    return needsNoRows(loop, made.getLse());
  if (isa<StateType>(value.getType()) &&
      !isa<LoadStateOp, IdentityOp, MaskOp, RebaseOp, arith::SelectOp>(op))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return !isRowTile(operand.getType()) && needsNoRows(loop, operand);
  });
}

/// Elements of the longest row that an iteration of `loop` loads.
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
  return merge && getMostElements(loop) >= machine.weighedOnceElements &&
         llvm::all_of(merge.getStates(), [&](Value state) {
           return state == loop.getRegionIterArg(0) || needsNoRows(loop, state);
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
         countOps(loop) * trips->getZExtValue() <= kMostUnrolledOps;
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
