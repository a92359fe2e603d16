//===- PrefetchCandidates.cpp - loads that can be prefetched --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Loads/PrefetchCandidates.h"

#include "dialect/MlafixThread.h"
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

/// Returns true if `value` depends on the block number. `seen` holds the values
/// that have been visited.
static bool dependsOnBlock(Value value, llvm::SmallPtrSetImpl<void *> &seen) {
  if (!seen.insert(value.getAsOpaquePointer()).second)
    return false;
  Operation *op = value.getDefiningOp();
  if (!op) {
    // An induction variable depends on the block number if the lower bound or
    // the step of its loop does. Function arguments do not depend on the block
    // number. All other arguments, such as values that a loop carries, are
    // assumed to depend on it.
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

/// Returns the bytes of a pack. Returns 0 if `type` is not a pack or has fewer
/// than `least` bytes.
static int64_t getPackBytes(Type type, int64_t least) {
  auto vector = dyn_cast<VectorType>(type);
  int64_t bytes =
      vector ? vector.getNumElements() * vector.getElementTypeBitWidth() / 8
             : 0;
  return bytes >= least ? bytes : 0;
}

bool PrefetchCandidates::isKnown(Value value) {
  llvm::SetVector<Operation *> slice;
  return collectSlice(value, wait, starts, slice);
}

/// Builds `value`, for which isKnown() must hold, before the wait. The result
/// is the value that `value` has in the first iteration of all enclosing loops.
Value PrefetchCandidates::buildBeforeWait(Value value) {
  if (starts.getValueMap().empty()) {
    moveBeforeWait(value, wait);
    return value;
  }
  llvm::SetVector<Operation *> slice;
  collectSlice(value, wait, starts, slice);
  OpBuilder b(wait);
  for (Operation *op : slice)
    b.clone(*op, starts);
  return starts.lookupOrDefault(value);
}

/// Builds the conjunction of those conjuncts of `mask` that can be computed
/// before the wait. Returns null if there are none. In select(x, y, false), y
/// may be poison where x is false, so only x counts.
Value PrefetchCandidates::buildKnown(Value mask) {
  if (isKnown(mask))
    return buildBeforeWait(mask);
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

/// Returns the group of loads under `condition` and `mask`. Adds an empty group
/// if there is none.
CandidateLoads &PrefetchCandidates::findGroup(Value condition, Value mask) {
  auto found = llvm::find_if(loads, [&](const CandidateLoads &group) {
    return group.condition == condition && group.mask == mask;
  });
  if (found != loads.end())
    return *found;
  loads.push_back({condition, mask, {}, {}});
  return loads.back();
}

/// Returns the load `op` as a candidate. Returns nullopt if `op` is no load
/// from global memory, if its pointer depends on memory, or if it loads no pack
/// and its pointer depends on the block number.
std::optional<PrefetchCandidates::Early>
PrefetchCandidates::findLoad(Operation *op) {
  Value pointer, mask;
  Type type = op->getNumResults() == 1 ? op->getResult(0).getType() : Type();
  if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
    pointer = load.getAddr();
  } else if (auto load = dyn_cast<LLVM::MaskedLoadOp>(op)) {
    auto lanes = load.getMask().getDefiningOp<vector::BroadcastOp>();
    if (!lanes)
      return std::nullopt;
    pointer = load.getData();
    mask = lanes.getSource();
  } else if (auto load = dyn_cast<PredicatedLoadOp>(op)) {
    pointer = load.getPointer();
    mask = load.getCondition();
  } else {
    return std::nullopt;
  }
  int64_t bytes = getPackBytes(type, rowBytes);
  if (!isGlobal(pointer) || (!bytes && dependsOnBlock(pointer)) ||
      !isKnown(pointer))
    return std::nullopt;
  return Early{op, pointer, mask, bytes, {}};
}

std::vector<PrefetchCandidates::Early> PrefetchCandidates::find(Operation *op) {
  std::vector<Early> found;
  for (; op; op = op->getNextNode()) {
    if (std::optional<Early> load = findLoad(op)) {
      found.push_back(*load);
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      bool isLowerKnown = isKnown(loop.getLowerBound()),
           isUpperKnown = isKnown(loop.getUpperBound());
      if (!isLowerKnown || !isUpperKnown) {
        // If only one bound is known, compute it while the grid waits.
        if (isLowerKnown)
          found.push_back({nullptr, loop.getLowerBound(), {}, 0, {}});
        if (isUpperKnown)
          found.push_back({nullptr, loop.getUpperBound(), {}, 0, {}});
        continue;
      }
      IRMapping around = starts;
      starts.map(loop.getInductionVar(), loop.getLowerBound());
      found.push_back({op, {}, {}, 0, find(&loop.getBody()->front())});
      starts = around;
    } else if (auto branch = dyn_cast<scf::IfOp>(op);
               branch && isKnown(branch.getCondition())) {
      found.push_back({op, {}, {}, 0, find(&branch.thenBlock()->front())});
    }
  }
  return found;
}

void PrefetchCandidates::buildLoad(const Early &load, Value condition) {
  Value early = buildBeforeWait(load.pointer);
  Value mask = load.mask ? buildKnown(load.mask) : Value();
  CandidateLoads &group = findGroup(condition, mask);
  (load.bytes ? group.rows : group.shared).push_back(early);
  group.rowBytes += load.bytes;
  group.packBytes = std::max(group.packBytes, load.bytes);
}

void PrefetchCandidates::build(const std::vector<Early> &candidates,
                               Value condition) {
  OpBuilder b(wait);
  for (const Early &early : candidates) {
    if (!early.op) {
      buildBeforeWait(early.pointer);
    } else if (auto loop = dyn_cast<scf::ForOp>(early.op)) {
      Value first = buildBeforeWait(loop.getLowerBound()),
            end = buildBeforeWait(loop.getUpperBound());
      Value iterates = arith::CmpIOp::create(
          b, loop.getLoc(), arith::CmpIPredicate::slt, first, end);
      IRMapping around = starts;
      starts.map(loop.getInductionVar(), first);
      build(early.inner, bothHold(b, condition, iterates));
      starts = around;
    } else if (auto branch = dyn_cast<scf::IfOp>(early.op)) {
      Value taken = buildBeforeWait(branch.getCondition());
      build(early.inner, bothHold(b, condition, taken));
    } else {
      buildLoad(early, condition);
    }
  }
}

/// Returns true if two groups have the same packs in the same order.
static bool haveAlikeRows(const CandidateLoads &x, const CandidateLoads &y) {
  return !x.rows.empty() && x.rows.size() == y.rows.size() &&
         llvm::all_of_zip(x.rows, y.rows, isAlike);
}

/// Joins groups that load the same rows under different conditions. The rows
/// are then prefetched if either condition holds.
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
        // The joined group has the rows now. Each group keeps its shared
        // values.
        group->rows.clear();
        group->rowBytes = 0;
      }
    }
  llvm::erase_if(loads, [](const CandidateLoads &group) {
    return group.rows.empty() && group.shared.empty();
  });
}

SmallVector<CandidateLoads> PrefetchCandidates::build() {
  build(candidates, Value());
  joinRows();
  return std::move(loads);
}
