//===- UnrollLoops.cpp - unroll loops that load rows ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Language/Iterations.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Remarks.h"
#include "lib/Transforms/States/RunningMerge.h"
#include "lib/Transforms/Target.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-unroll-loops"

namespace mlafix {
#define GEN_PASS_DEF_UNROLLLOOPSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

static bool readsRow(Operation &op) {
  auto access = dyn_cast<MemoryAccessOpInterface>(op);
  return access && llvm::any_of(access.getAccesses(), [](const auto &one) {
           return one.isRow && !one.isWrite;
         });
}

/// Returns true if the loop itself reads rows, and not only a nested loop.
static bool readsRows(scf::ForOp loop) {
  return llvm::any_of(*loop.getBody(), readsRow);
}

/// Returns true if `write`, in the loop, depends on a row that the loop reads
/// in the same or an earlier iteration. Effects other than stores, such as an
/// exchange, are taken to depend on all rows.
static bool waitsForRows(Operation *write, scf::ForOp loop) {
  if (!isa<MemoryAccessOpInterface>(write))
    return true;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitBlockArguments = true;
  options.omitUsesFromAbove = false;
  options.filter = [&](Operation *op) { return loop->isProperAncestor(op); };
  // The slice includes the operands of the write, and the operands of the
  // branches and loops around it.
  llvm::SetVector<Operation *> slice;
  for (Operation *op = write; op != loop; op = op->getParentOp())
    if (failed(getBackwardSlice(op, &slice, options)))
      return true;
  auto isOfRows = [&](Operation *op) {
    return readsRow(*op) || llvm::any_of(op->getOperands(), [&](Value x) {
             return llvm::is_contained(loop.getRegionIterArgs(), x);
           });
  };
  return llvm::any_of(slice,
                      [&](Operation *op) { return anyOp(op, isOfRows); });
}

/// Returns true if the rows of an iteration must arrive before the loads of the
/// next iteration are issued. This is so if a store depends on these rows,
/// since the loads of the next iteration cannot pass the store.
static bool readsRowByRow(scf::ForOp loop) {
  return anyOp(loop, [&](Operation *op) {
    return op->getNumRegions() == 0 && mayWrite(op) && waitsForRows(op, loop);
  });
}

/// Rewrites a loop so that its trip count is upper - lower and not negative, as
/// unrolling by a factor requires.
static scf::ForOp makeDivisible(scf::ForOp loop) {
  std::optional<APInt> step = loop.getConstantStep();
  Type type = loop.getInductionVar().getType();
  bool isWide = type.isIndex() || type.isInteger(64);
  if (!isWide || !step || !step->isOne() || loop.getUnsignedCmp())
    return countIterations(loop);
  OpBuilder b(loop);
  Value lower = loop.getLowerBound();
  // Clamp the upper bound, so that an empty range has no iterations. If the
  // lower bound is 0, unrolling handles a negative count itself.
  if (!isConstantIntValue(lower, 0))
    loop.setUpperBound(b.createOrFold<arith::MaxSIOp>(loop.getLoc(), lower,
                                                      loop.getUpperBound()));
  return loop;
}

/// Replaces the remainder loop, which has fewer than `factor` iterations, by
/// code without a loop. All loads come first, followed by the merges of the
/// loop in the same order. The code is in a branch, so that its loads do not
/// move before the main loop. Otherwise lanes would have to hold the rows of
/// both.
static void loadRestAtOnce(scf::ForOp rest, MergeOp merge, uint64_t factor) {
  Location loc = rest.getLoc();
  OpBuilder b(rest);
  Value first = rest.getLowerBound(), running = rest.getInitArgs()[0];
  // The upper bound is not below the lower one, so this does not overflow.
  Value left = arith::SubIOp::create(b, loc, rest.getUpperBound(), first);
  auto addBranch = [&](Value exists) {
    auto branch = scf::IfOp::create(b, loc, running.getType(), exists,
                                    /*withElseRegion=*/true);
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, loc, running);
    b.setInsertionPointToStart(branch.thenBlock());
    return branch;
  };
  auto constant = [&](uint64_t i) -> Value {
    return arith::ConstantOp::create(
        b, loc, b.getIntegerAttr(first.getType(), int64_t(i)));
  };
  auto exists = [&](uint64_t i) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, constant(i),
                                 left);
  };
  scf::IfOp outermost = addBranch(exists(0));
  Value yes = arith::ConstantIntOp::create(b, loc, true, 1);
  SmallVector<std::pair<Value, IRMapping>> iterations;
  for (uint64_t i = 0; i + 1 < factor; ++i) {
    Value condition = i ? exists(i) : yes;
    Value index = arith::AddIOp::create(b, loc, first, constant(i));
    iterations.push_back(
        {condition, cloneIteration(b, rest, merge, index, condition)});
  }
  for (auto &[condition, iteration] : iterations) {
    if (condition != yes) {
      OpBuilder after(b);
      scf::IfOp branch = addBranch(condition);
      after.setInsertionPointAfter(branch);
      scf::YieldOp::create(after, loc, branch.getResults());
    }
    iteration.map(rest.getRegionIterArg(0), running);
    running = b.clone(*merge, iteration)->getResult(0);
  }
  scf::YieldOp::create(b, loc, running);
  rest.replaceAllUsesWith(outermost.getResults());
  rest.erase();
}

namespace {
class UnrollLoopsPass
    : public mlafix::impl::UnrollLoopsPassBase<UnrollLoopsPass> {
public:
  using UnrollLoopsPassBase::UnrollLoopsPassBase;

  void runOnOperation() override {
    if (!isGPU(target))
      return;
    FailureOr<MachineModel> model = getMachine(getOperation(), target, machine);
    if (failed(model))
      return signalPassFailure();
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) {
      if (readsRows(loop) && !isInRepair(loop))
        loops.push_back(loop);
    });
    // Visit inner loops first, so that outer loops count them as unrolled.
    for (scf::ForOp loop : loops)
      if (failed(unroll(loop, *model)))
        return signalPassFailure();
  }

private:
  LogicalResult unroll(scf::ForOp loop, const MachineModel &model);
};
} // namespace

/// Returns the number of rows and states that a lane keeps through the whole
/// loop: those that the loop carries, and computed ones from outside the loop
/// that its body uses.
static int64_t countKeptRows(scf::ForOp loop) {
  return llvm::count_if(getKeptValues(loop), [](Value each) {
    return isa<StateType>(each.getType()) || isRowTile(each.getType());
  });
}

/// Returns the number of iterations that become one, for a loop that is not
/// fully unrolled. The number is larger if each iteration reduces a row
/// (reducesRowPerIteration), unless the lane keeps so many rows that the rows
/// of eight iterations would not fit into the registers.
static uint64_t chooseFactor(scf::ForOp loop, const MachineModel &model) {
  return reducesRowPerIteration(loop) && countKeptRows(loop) < model.crowdedRows
             ? model.unrollReduced
             : model.unrollFactor;
}

LogicalResult UnrollLoopsPass::unroll(scf::ForOp loop,
                                      const MachineModel &model) {
  auto opts = nameRemark("unroll-loops", DEBUG_TYPE, getOperation());
  auto isWhole = [&](std::optional<APInt> trips) {
    return trips && trips->ule(model.unrollWhole);
  };
  if (!isWhole(loop.getStaticTripCount()) && readsRowByRow(loop)) {
    remark::missed(loop.getLoc(), opts) << remark::add(
        "a loop that reads rows is not unrolled: it stores what it computes of "
        "them, and no load passes a store");
    return success();
  }
  loop = makeDivisible(loop);
  std::optional<APInt> trips = loop.getStaticTripCount();
  bool isShort = isWhole(trips);
  uint64_t factor = isShort ? trips->getZExtValue() : chooseFactor(loop, model);
  uint64_t ops = countOps(loop) * factor;
  LDBG() << loop.getLoc() << ": " << factor << " times, " << ops << " ops";
  if (ops > static_cast<uint64_t>(model.unrolledOperations)) {
    remark::missed(loop.getLoc(), opts) << remark::add(
        "a loop that reads rows is not unrolled: {0} times its body would be "
        "{1} operations, and {2} are the limit",
        factor, ops, model.unrolledOperations);
    return success();
  }
  remark::passed(loop.getLoc(), opts) << remark::add(
      "a loop that reads rows is unrolled {0}, so that the rows of {1} "
      "iterations are loaded at once",
      isShort ? "whole" : "in part", factor);
  if (isShort)
    return loopUnrollFull(loop);
  FailureOr<UnrolledLoopInfo> unrolled = loopUnrollByFactor(loop, factor);
  if (failed(unrolled))
    return failure();
  StringRef reason;
  if (std::optional<scf::ForOp> rest = unrolled->epilogueLoopOp)
    if (MergeOp merge = getRunningMerge(*rest, reason);
        merge && countRowBytes(*rest) <= model.unrolledRestBytes)
      loadRestAtOnce(*rest, merge, factor);
  return success();
}
