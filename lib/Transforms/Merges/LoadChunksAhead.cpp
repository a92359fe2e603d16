//===- LoadChunksAhead.cpp - the next chunk is loaded early ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Merges/LoadChunksAhead.h"
#include "dialect/Plan.h"
#include "lib/Transforms/Merges/OnlyChunk.h"
#include "lib/Transforms/Remarks.h"
#include "lib/Transforms/States/RunningMerge.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-lower-merge-loops"

using namespace mlir;
using namespace mlafix;

static int64_t countBytes(vector::MaskedLoadOp load) {
  VectorType type = load.getVectorType();
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

namespace {
/// The loads of one iteration of a merge loop, in a form that can be built for
/// any iteration.
class ChunkLoads {
public:
  /// `mostBytes`: limit of the bytes that a lane holds of the next chunk.
  /// `streamedBytes`: size of f32 loads that get the evict-first hint.
  /// `branches`: load complete chunks without predicates.
  ChunkLoads(scf::ForOp loop, int64_t mostBytes, int64_t streamedBytes,
             bool branches)
      : loop(loop), mostBytes(mostBytes), streamedBytes(streamedBytes),
        branches(branches) {}

  /// Collects the loads. Returns false and sets `reason` if an address comes
  /// from memory, or if together they need too many registers.
  bool collect(StringRef &reason);
  /// Bytes of the next chunk per lane.
  int64_t bytes = 0;

  /// Builds the values of `carried` for the iteration at `index`.
  SmallVector<Value> build(OpBuilder &b, Location loc, Value index) const;
  /// As build(), but yields arbitrary values if there is no such iteration.
  SmallVector<Value> buildIfAny(OpBuilder &b, Location loc, Value index) const;
  /// As build(), but yields arbitrary values if `condition` (may be null)
  /// holds.
  SmallVector<Value> buildUnless(OpBuilder &b, Location loc, Value condition,
                                 Value index) const;

  /// The results of the loads that the iteration uses.
  SmallVector<Value> carried;

private:
  bool collectMasks(StringRef &reason);
  void collectCarried();
  SmallVector<Value> buildPoison(OpBuilder &b, Location loc) const;
  using BuildValues = function_ref<SmallVector<Value>()>;
  SmallVector<Value> buildBranch(OpBuilder &b, Location loc, Value condition,
                                 BuildValues then, BuildValues otherwise) const;
  SmallVector<Value> cloneLoads(OpBuilder &b, IRMapping mapping,
                                bool isMasked) const;
  bool isStreamed(vector::MaskedLoadOp load) const {
    return load.getVectorType().getElementType().isF32() &&
           countBytes(load) == streamedBytes;
  }

  mutable scf::ForOp loop;
  int64_t mostBytes;
  int64_t streamedBytes;
  bool branches;
  llvm::SetVector<Operation *> indices; // ops that need no load, in order
  llvm::SetVector<Operation *> loads;   // loads and ops that need them, in
                                        // order
  llvm::SetVector<Value> masks;         // i1
};
} // namespace

/// The predicate of the load (a scalar), or null.
static Value getMask(vector::MaskedLoadOp load) {
  auto mask = load.getMask().getDefiningOp<vector::BroadcastOp>();
  return mask ? mask.getSource() : Value();
}

bool ChunkLoads::collect(StringRef &reason) {
  SmallVector<Operation *> slice;
  llvm::SmallPtrSet<Operation *, 32> inSlice;
  for (Operation &op : llvm::reverse(loop.getBody()->without_terminator())) {
    bool isLoad = isa<vector::MaskedLoadOp>(op);
    if (!isLoad && llvm::none_of(op.getUsers(), [&](Operation *user) {
          return inSlice.contains(user);
        }))
      continue;
    if (!isLoad && (!isPure(&op) || op.getNumRegions())) {
      reason = "what is loaded depends on the chunk before";
      return false;
    }
    inSlice.insert(&op);
    slice.push_back(&op);
  }
  for (Operation *op : llvm::reverse(slice)) {
    bool needsLoad = llvm::any_of(op->getOperands(), [&](Value operand) {
      return loads.contains(operand.getDefiningOp());
    });
    (needsLoad || isa<vector::MaskedLoadOp>(op) ? loads : indices).insert(op);
  }
  if (!loads.empty())
    return collectMasks(reason);
  reason = "a chunk loads nothing";
  return false;
}

bool ChunkLoads::collectMasks(StringRef &reason) {
  for (Operation *op : loads) {
    auto load = dyn_cast<vector::MaskedLoadOp>(op);
    if (!load)
      continue;
    bytes += countBytes(load);
    Value mask = getMask(load);
    if (!mask || loads.contains(mask.getDefiningOp())) {
      reason = "the condition of a state's load depends on another load";
      return false;
    }
    masks.insert(mask);
  }
  collectCarried();
  if (bytes > mostBytes)
    reason = "it would take too many registers of a lane";
  return bytes <= mostBytes;
}

/// Collects the results of the loads, including selects that replace masked-off
/// elements by constants: their conditions are known at the load.
void ChunkLoads::collectCarried() {
  for (Operation *op : llvm::to_vector(loads)) {
    if (!isa<vector::MaskedLoadOp>(op))
      continue;
    Value value = op->getResult(0);
    while (value.hasOneUse()) {
      Operation *user = *value.getUsers().begin();
      auto select = dyn_cast<arith::SelectOp>(user);
      bool isChosen = select && select.getTrueValue() == value &&
                      masks.contains(select.getCondition()) &&
                      matchPattern(select.getFalseValue(), m_Constant());
      if (user->getBlock() != loop.getBody() ||
          !(isChosen || isa<vector::ExtractOp>(user)))
        break;
      loads.insert(user);
      value = user->getResult(0);
    }
    carried.push_back(value);
  }
}

/// Clones the loads at the insertion point; without masks if all of these hold.
SmallVector<Value> ChunkLoads::cloneLoads(OpBuilder &b, IRMapping mapping,
                                          bool isMasked) const {
  for (Operation *op : loads) {
    auto load = dyn_cast<vector::MaskedLoadOp>(op);
    auto select = dyn_cast<arith::SelectOp>(op);
    if (!isMasked && load) {
      SmallVector<Value> at =
          llvm::map_to_vector(load.getIndices(), [&](Value index) {
            return mapping.lookupOrDefault(index);
          });
      mapping.map(load.getResult(),
                  vector::LoadOp::create(b, load.getLoc(), load.getVectorType(),
                                         load.getBase(), at, isStreamed(load),
                                         load.getMaybeAlign())
                      .getResult());
    } else if (!isMasked && select && masks.contains(select.getCondition())) {
      mapping.map(select.getResult(),
                  mapping.lookupOrDefault(select.getTrueValue()));
    } else {
      b.clone(*op, mapping);
    }
  }
  return llvm::map_to_vector(
      carried, [&](Value value) { return mapping.lookupOrDefault(value); });
}

/// Builds a branch that yields values of the types of `carried`.
SmallVector<Value> ChunkLoads::buildBranch(OpBuilder &b, Location loc,
                                           Value condition, BuildValues then,
                                           BuildValues otherwise) const {
  auto branch = scf::IfOp::create(b, loc, ValueRange(carried).getTypes(),
                                  condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loc, then());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, otherwise());
  return branch.getResults();
}

SmallVector<Value> ChunkLoads::build(OpBuilder &b, Location loc,
                                     Value index) const {
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), index);
  for (Operation *op : indices)
    b.clone(*op, mapping);
  if (!branches)
    return cloneLoads(b, mapping, /*isMasked=*/true);
  Value all, any;
  for (Value mask : masks) {
    mask = mapping.lookupOrDefault(mask);
    all = all ? arith::AndIOp::create(b, loc, all, mask) : mask;
    any = any ? arith::OrIOp::create(b, loc, any, mask) : mask;
  }
  // A lane group may be past the end while others still have a chunk.
  auto none = [&] {
    return llvm::map_to_vector(carried, [&](Value value) -> Value {
      auto select = value.getDefiningOp<arith::SelectOp>();
      if (select && loads.contains(select))
        return b.clone(*select.getFalseValue().getDefiningOp())->getResult(0);
      return arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType()));
    });
  };
  return buildBranch(
      b, loc, all, [&] { return cloneLoads(b, mapping, /*isMasked=*/false); },
      [&] {
        return buildBranch(
            b, loc, any,
            [&] { return cloneLoads(b, mapping, /*isMasked=*/true); }, none);
      });
}

SmallVector<Value> ChunkLoads::buildPoison(OpBuilder &b, Location loc) const {
  return llvm::map_to_vector(carried, [&](Value value) -> Value {
    return ub::PoisonOp::create(b, loc, value.getType());
  });
}

SmallVector<Value> ChunkLoads::buildIfAny(OpBuilder &b, Location loc,
                                          Value index) const {
  Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, index,
                                       loop.getUpperBound());
  return buildBranch(
      b, loc, exists, [&] { return build(b, loc, index); },
      [&] { return buildPoison(b, loc); });
}

SmallVector<Value> ChunkLoads::buildUnless(OpBuilder &b, Location loc,
                                           Value condition, Value index) const {
  if (!condition)
    return build(b, loc, index);
  return buildBranch(
      b, loc, condition, [&] { return buildPoison(b, loc); },
      [&] { return build(b, loc, index); });
}

/// The ops that find the largest lse for `loop`, from the loop `largest` on,
/// including the exchange between groups.
static SmallVector<Operation *> collectLargestLse(scf::ForOp largest,
                                                  scf::ForOp loop) {
  llvm::SetVector<Operation *> ops;
  for (Operation *op = largest; op != loop; op = op->getNextNode()) {
    bool needsIt = op == largest || !isMemoryEffectFree(op);
    op->walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        needsIt |= ops.contains(operand.getDefiningOp());
    });
    if (needsIt)
      ops.insert(op);
  }
  return ops.takeVector();
}

/// Makes `loop` carry what `loads` loads for its next iteration. The load is
/// placed before `next`; `init` is the first iteration's. Returns the new loop.
static scf::ForOp carryLoads(scf::ForOp loop, const ChunkLoads &loads,
                             SmallVector<Value> init, Operation *next) {
  IRRewriter rewriter(loop);
  Location loc = loop.getLoc();
  auto addStep = [&](Value index) -> Value {
    return arith::AddIOp::create(rewriter, loc, index, loop.getStep());
  };
  // Also carry where the next chunk begins. As a function of the induction
  // variable it would be known before the wait for the preceding grid, and
  // OverlapGrids.cpp would prefetch the second chunk beside the first.
  init.push_back(addStep(loop.getLowerBound()));
  auto addYields = [&](OpBuilder &, Location, ArrayRef<BlockArgument> ahead) {
    rewriter.setInsertionPoint(next);
    Value index = ahead.back();
    SmallVector<Value> yields = loads.buildIfAny(rewriter, loc, index);
    yields.push_back(addStep(index));
    for (auto [value, loaded] : llvm::zip(loads.carried, ahead))
      rewriter.replaceAllUsesWith(value, loaded);
    return yields;
  };
  return cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      rewriter, init, /*replaceInitOperandUsesInLoop=*/false, addYields));
}

/// Returns, for each of `lses` in `largest`, the index in `loads` of the same
/// load in `loop`. Nullopt if one has no counterpart, or if two copies of
/// `loop` would be too large. Empty if `largest` is null. With one chunk per
/// group, only the first of the lanes that share a group's chunks in `largest`
/// has a chunk, and only that lane reports its result.
static std::optional<SmallVector<size_t>> findOwn(scf::ForOp largest,
                                                  ArrayRef<Value> lses,
                                                  scf::ForOp loop,
                                                  ArrayRef<Value> loads) {
  auto most = static_cast<uint64_t>(getMachine(loop).unrolledOperations);
  if (2 * countOps(loop) > most)
    return std::nullopt;
  if (!largest)
    return SmallVector<size_t>();
  // The test for a single chunk must precede `largest`.
  IRRewriter b(loop.getContext());
  SmallVector<Value> bounds = {loop.getLowerBound(), loop.getUpperBound(),
                               loop.getStep()};
  if (largest.getLowerBound() != bounds[0] ||
      largest.getUpperBound() != bounds[1] ||
      failed(moveValueDefinitions(b, bounds, largest)))
    return std::nullopt;
  return findOfChunk(largest, lses, loop, loads);
}

void mlafix::loadChunksAhead(KernelOp kernel, ChunkLoop chunks) {
  auto [end, largest] = chunks;
  auto loop = cast<scf::ForOp>(end->getParentOp());
  auto opts = nameRemark("load-chunks-ahead", DEBUG_TYPE, kernel);
  int64_t mostBytes = getPlanned(kernel, PlanField::ChunkAheadBytes);
  ChunkLoads loads(loop, mostBytes,
                   getPlanned(kernel, PlanField::StreamedBytes),
                   /*branches=*/true);
  StringRef reason;
  if (!loads.collect(reason)) {
    LDBG() << kernel.getSymName() << ": nothing loaded ahead: " << reason;
    remark::missed(loop.getLoc(), opts)
        << remark::add("a chunk is loaded after the one before it is merged: "
                       "{0}",
                       reason);
    return;
  }
  remark::passed(loop.getLoc(), opts)
      << remark::add("the next chunk, {0} bytes a lane, is loaded before the "
                     "current one is merged",
                     loads.bytes);
  // Lanes have different chunks, so their branches would diverge.
  ChunkLoads lses(largest, mostBytes, /*streamedBytes=*/0,
                  /*branches=*/false);
  const bool carriesLses = largest && lses.collect(reason);
  std::optional<SmallVector<size_t>> own;
  bool isPlanned = kernel.getPlanAttr().has(PlanField::SingleChunk);
  if (isPlanned && (carriesLses || !largest))
    own = findOwn(largest, lses.carried, loop, loads.carried);
  if (own)
    remark::passed(loop.getLoc(), opts) << remark::add(
        "groups of lanes that have one chunk each take code without loops");

  OpBuilder b(largest ? largest : loop);
  Location loc = loop.getLoc();
  Value hasOnlyChunk = own ? buildHasOnlyChunk(b, loop) : Value();
  SmallVector<Value> firstLses;
  if (carriesLses)
    firstLses = lses.buildUnless(b, loc, hasOnlyChunk, largest.getLowerBound());
  SmallVector<Operation *> behind;
  if (largest)
    behind = collectLargestLse(largest, loop);
  b.setInsertionPoint(loop);
  SmallVector<Value> first = loads.build(b, loc, loop.getLowerBound());
  IRMapping known;
  if (own)
    for (auto [lse, number] : llvm::zip_equal(lses.carried, *own))
      known.map(lse, first[number]);
  loop = carryLoads(loop, loads, first, end);
  // The first chunk is in flight meanwhile.
  for (Operation *op : behind)
    op->moveBefore(loop);
  if (own)
    separateOnlyChunk(behind, largest, loop, hasOnlyChunk, end.getCondition(),
                      known);
  if (carriesLses)
    carryLoads(largest, lses, firstLses, &largest.getBody()->front());
}
