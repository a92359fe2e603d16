//===- PrefetchCandidates.cpp - loads that can be prefetched --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Late/PrefetchCandidates.h"

#include "lib/Transforms/PredicatedLoad.h"
#include "lib/Transforms/Speculation.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlafix;

/// True if `value` depends on the block number; `seen` holds values already
/// visited.
static bool dependsOnBlock(Value value, llvm::SmallPtrSetImpl<void *> &seen) {
  if (!seen.insert(value.getAsOpaquePointer()).second)
    return false;
  Operation *op = value.getDefiningOp();
  if (!op) { // in a loop: follow the induction variable, not carried values
    auto argument = cast<BlockArgument>(value);
    Operation *parent = argument.getOwner()->getParentOp();
    auto loop = dyn_cast<scf::ForOp>(parent);
    return !isa<LLVM::LLVMFuncOp>(parent) &&
           (!loop || value != loop.getInductionVar() ||
            dependsOnBlock(loop.getLowerBound(), seen) ||
            dependsOnBlock(loop.getStep(), seen));
  }
  return isBlockId(op) || llvm::any_of(op->getOperands(), [&](Value operand) {
           return dependsOnBlock(operand, seen);
         });
}

static bool dependsOnBlock(Value value) {
  llvm::SmallPtrSet<void *, 16> seen;
  return dependsOnBlock(value, seen);
}

/// The bytes of a pack; 0 if `type` is not a pack or has fewer than `least`.
static int64_t getPackBytes(Type type, int64_t least) {
  auto vector = dyn_cast<VectorType>(type);
  int64_t bytes =
      vector ? vector.getNumElements() * vector.getElementTypeBitWidth() / 8
             : 0;
  return bytes >= least ? bytes : 0;
}

/// Computes `value` before the wait, for the first iteration of all enclosing
/// loops; null if that needs memory.
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

/// The conjuncts of `mask` that can be computed before the wait; null if there
/// are none. In select(x, y, false), y may be poison where x is false.
Value PrefetchCandidates::buildKnown(Value mask) {
  if (Value early = buildBeforeWait(mask))
    return early;
  if (auto both = mask.getDefiningOp<arith::AndIOp>()) {
    Value x = buildKnown(both.getLhs()), y = buildKnown(both.getRhs());
    OpBuilder b(wait);
    return x && y ? arith::AndIOp::create(b, mask.getLoc(), x, y) : x ? x : y;
  }
  auto both = mask.getDefiningOp<arith::SelectOp>();
  return both && matchPattern(both.getFalseValue(), m_Zero())
             ? buildKnown(both.getCondition())
             : Value();
}

/// The group of loads under `condition` and `mask`.
CandidateLoads &PrefetchCandidates::find(Value condition, Value mask) {
  auto found = llvm::find_if(loads, [&](const CandidateLoads &group) {
    return group.condition == condition && group.mask == mask;
  });
  if (found != loads.end())
    return *found;
  loads.push_back({condition, mask, {}, {}});
  return loads.back();
}

void PrefetchCandidates::collectLoad(Value pointer, Type type, Value mask,
                                     Value condition) {
  int64_t bytes = getPackBytes(type, rowBytes);
  if (!isGlobal(pointer) || (!bytes && dependsOnBlock(pointer)))
    return;
  Value early = buildBeforeWait(pointer);
  if (!early)
    return;
  Value earlyMask = mask ? buildKnown(mask) : mask;
  CandidateLoads &group = find(condition, earlyMask);
  (bytes ? group.rows : group.shared).push_back(early);
  group.rowBytes += bytes;
  group.packBytes = std::max(group.packBytes, bytes);
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
  collect(&loop.getBody()->front(), bothHold(b, condition, iterates));
  starts = around;
}

/// True if two groups have the same packs in the same order.
static bool haveAlikeRows(const CandidateLoads &x, const CandidateLoads &y) {
  return !x.rows.empty() && x.rows.size() == y.rows.size() &&
         llvm::all_of_zip(x.rows, y.rows, isAlike);
}

/// Rows loaded in two places under different conditions are prefetched if
/// either holds.
void PrefetchCandidates::joinRows() {
  OpBuilder b(wait);
  auto getCondition = [&](const CandidateLoads &group) {
    return group.mask ? bothHold(b, group.condition, group.mask)
                      : group.condition;
  };
  for (size_t i = 0; i < loads.size(); ++i)
    for (size_t j = i + 1; j < loads.size(); ++j) {
      if (!haveAlikeRows(loads[i], loads[j]))
        continue;
      Value x = getCondition(loads[i]), y = getCondition(loads[j]), either;
      if (x && y)
        either = arith::OrIOp::create(b, wait->getLoc(), x, y);
      loads.push_back({either,
                       Value(),
                       loads[i].rows,
                       {},
                       loads[i].rowBytes,
                       loads[i].packBytes});
      for (CandidateLoads *group : {&loads[i], &loads[j]}) {
        group->rows.clear(); // shared values stay
        group->rowBytes = 0;
      }
    }
  llvm::erase_if(loads, [](const CandidateLoads &group) {
    return group.rows.empty() && group.shared.empty();
  });
}

void PrefetchCandidates::collect(Operation *op, Value condition) {
  for (; op; op = op->getNextNode()) {
    if (auto load = dyn_cast<LLVM::LoadOp>(op))
      collectLoad(load.getAddr(), load.getType(), Value(), condition);
    else if (auto load = dyn_cast<LLVM::MaskedLoadOp>(op)) {
      if (auto mask = load.getMask().getDefiningOp<vector::BroadcastOp>())
        collectLoad(load.getData(), load.getType(), mask.getSource(),
                    condition);
    } else if (std::optional<PredicatedLoad> load = asPredicatedLoad(op))
      collectLoad(load->pointer, load->type, load->condition, condition);
    else if (auto loop = dyn_cast<scf::ForOp>(op))
      collectLoop(loop, condition);
    else if (auto branch = dyn_cast<scf::IfOp>(op))
      if (Value taken = buildBeforeWait(branch.getCondition())) {
        OpBuilder b(wait);
        collect(&branch.thenBlock()->front(), bothHold(b, condition, taken));
      }
  }
}
