//===- LoadChunksAhead.cpp - load the next chunk early --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Merges/LoadChunksAhead.h"
#include "dialect/Plan.h"
#include "lib/Transforms/Remarks.h"
#include "lib/Transforms/States/RunningMerge.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
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
/// The loads of one iteration of a merge loop. They can be built for any other
/// iteration, too.
class ChunkLoads {
public:
  /// `mostBytes` limits the bytes of the next chunk that a lane holds. Loads of
  /// `streamedBytes` bytes of f32 get the evict-first hint. If `branches` is
  /// true, complete chunks are loaded without predicates, in a branch.
  ChunkLoads(scf::ForOp loop, int64_t mostBytes, int64_t streamedBytes,
             bool branches)
      : loop(loop), mostBytes(mostBytes), streamedBytes(streamedBytes),
        branches(branches) {}

  /// Collects the loads. Returns false and sets `reason` if they cannot be
  /// built for another iteration, or if their values need too many registers.
  bool collect(StringRef &reason);
  /// The bytes of the next chunk that each lane loads. Set by collect().
  int64_t bytes = 0;

  /// Builds the values of `carried` for the iteration at `index`.
  SmallVector<Value> build(OpBuilder &b, Location loc, Value index) const;
  /// Builds the values of `carried` for the iteration at `index`. They are
  /// arbitrary if the loop has no such iteration.
  SmallVector<Value> buildIfAny(OpBuilder &b, Location loc, Value index) const;
  /// Builds the values of `carried` for the iteration at `index`. They are
  /// arbitrary where `condition`, an i1, is true (null: always false).
  SmallVector<Value> buildUnless(OpBuilder &b, Location loc, Value condition,
                                 Value index) const;

  /// The loaded values that the iteration uses.
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
  // Ops that need no loaded value, in program order.
  llvm::SetVector<Operation *> indices;
  // Loads and ops that need loaded values, in program order.
  llvm::SetVector<Operation *> loads;
  llvm::SetVector<Value> masks; // predicates of the loads, i1
};
} // namespace

/// Returns the scalar predicate of `load`, or null if the mask is not a
/// broadcast.
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

/// Collects the loaded values. A select that replaces masked-off elements by a
/// constant belongs to its load, because its condition is known at the load.
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

/// Clones the loads at the insertion point. If `isMasked` is false, all
/// predicates are true, and the clones have none.
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

/// Builds a branch whose results have the types of `carried`.
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
  // If no mask holds, nothing is loaded. This happens in a lane group that is
  // past the end while other groups still have a chunk.
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

//===----------------------------------------------------------------------===//
// Code for groups with one chunk
//===----------------------------------------------------------------------===//

/// Builds an i1 that is true if the chunk loop `loop` has one iteration in this
/// launch. Each lane group then has at most one chunk.
static Value buildHasOnlyChunk(OpBuilder &b, scf::ForOp loop) {
  Location loc = loop.getLoc();
  Value lower = loop.getLowerBound(), upper = loop.getUpperBound();
  Value any =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, lower, upper);
  Value second = arith::AddIOp::create(b, loc, lower, loop.getStep());
  Value one =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, upper, second);
  return arith::AndIOp::create(b, loc, any, one);
}

/// Returns the number of the first iteration of a chunk in `loop`: the result
/// of the only addition to the induction variable. Returns null if there is no
/// such addition or more than one.
static Value getChunk(scf::ForOp loop) {
  Value chunk;
  for (Operation *user : loop.getInductionVar().getUsers()) {
    if (!isa<arith::AddIOp>(user))
      continue;
    if (chunk)
      return Value();
    chunk = user->getResult(0);
  }
  return chunk;
}

namespace {
/// Compares values of two loops that process the same chunk. Remembers the
/// pairs that have been compared.
class ChunkComparison {
public:
  ChunkComparison(scf::ForOp loopOfX, scf::ForOp loopOfY)
      : loopOfX(loopOfX), loopOfY(loopOfY), chunkOfX(getChunk(loopOfX)),
        chunkOfY(getChunk(loopOfY)) {}

  bool areAlike(Value x, Value y) {
    if (x == y || (chunkOfX && chunkOfY && x == chunkOfX && y == chunkOfY))
      return true;
    auto known = answers.find({x, y});
    if (known != answers.end())
      return known->second;
    bool alike = areComputedAlike(x, y);
    answers.insert({{x, y}, alike});
    return alike;
  }

private:
  bool areComputedAlike(Value x, Value y) {
    Operation *a = x.getDefiningOp(), *b = y.getDefiningOp();
    return a && b && loopOfX->isProperAncestor(a) &&
           loopOfY->isProperAncestor(b) &&
           cast<OpResult>(x).getResultNumber() ==
               cast<OpResult>(y).getResultNumber() &&
           OperationEquivalence::isEquivalentTo(
               a, b, [&](Value p, Value q) { return success(areAlike(p, q)); },
               /*markEquivalent=*/nullptr,
               OperationEquivalence::IgnoreLocations);
  }

  scf::ForOp loopOfX, loopOfY;
  Value chunkOfX, chunkOfY;
  llvm::DenseMap<std::pair<Value, Value>, bool> answers;
};
} // namespace

/// For each of `values`, finds an equal value in `among` and returns its index
/// there. `values` belong to the chunk loop `loop`, `among` to the chunk loop
/// `other`. Values are equal if they are the same whenever both loops process
/// the same chunk. In both loops, a chunk begins at the sum of the induction
/// variable and an offset. Returns nullopt if one of `values` has no equal.
/// Loads are compared by their operands, so no store may come between them.
static std::optional<SmallVector<size_t>> findOfChunk(scf::ForOp loop,
                                                      ArrayRef<Value> values,
                                                      scf::ForOp other,
                                                      ArrayRef<Value> among) {
  ChunkComparison comparison(loop, other);
  SmallVector<size_t> numbers;
  for (Value value : values) {
    const Value *found = llvm::find_if(among, [&](Value candidate) {
      return comparison.areAlike(value, candidate);
    });
    if (found == among.end())
      return std::nullopt;
    numbers.push_back(found - among.begin());
  }
  return numbers;
}

/// Clones the only iteration of `loop` and maps the loop's results to their
/// values. Ops with results that `mapping` already maps are not cloned.
static void cloneOnlyIteration(OpBuilder &b, scf::ForOp loop,
                               IRMapping &mapping) {
  mapping.map(loop.getInductionVar(), loop.getLowerBound());
  for (auto [argument, init] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs()))
    mapping.map(argument, mapping.lookupOrDefault(init));
  for (Operation &op : loop.getBody()->without_terminator())
    if (llvm::none_of(op.getResults(),
                      [&](Value result) { return mapping.contains(result); }))
      b.clone(op, mapping);
  for (auto [result, value] :
       llvm::zip_equal(loop.getResults(), loop.getYieldedValues()))
    mapping.map(result, mapping.lookupOrDefault(value));
}

/// Adds a branch on `hasOnlyChunk` (i1). If it is false, the ops `before` and
/// then `loop` execute as they are. If it is true, loop-free copies of these
/// ops execute, one version for each value of `isShared` (i1). The first op of
/// `before` is the loop `largest` unless `largest` is null. `largest` has one
/// iteration if `loop` has one. `known` maps values of these iterations to
/// values that are already computed.
static void separateOnlyChunk(ArrayRef<Operation *> before, scf::ForOp largest,
                              scf::ForOp loop, Value hasOnlyChunk,
                              Value isShared, const IRMapping &known) {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  SmallVector<Operation *> ops(before);
  ops.push_back(loop);
  auto isAround = [&](Operation *user) {
    return llvm::any_of(ops,
                        [&](Operation *op) { return op->isAncestor(user); });
  };
  llvm::SetVector<Value> results;
  for (Operation *op : ops) {
    // All branches use the same buffers in shared memory, so the buffers move
    // in front of the branches.
    op->walk([&](memref::AllocaOp buffer) { buffer->moveBefore(ops.front()); });
    for (Value result : op->getResults())
      if (!llvm::all_of(result.getUsers(), isAround))
        results.insert(result);
  }
  SmallVector<Value> values(results.begin(), results.end());
  TypeRange types = ValueRange(values).getTypes();
  auto branch =
      scf::IfOp::create(b, loc, types, hasOnlyChunk, /*withElseRegion=*/true);
  for (auto [value, result] : llvm::zip_equal(values, branch.getResults()))
    value.replaceUsesWithIf(
        result, [&](OpOperand &use) { return !isAround(use.getOwner()); });

  // A branch without results is created with terminators.
  auto begin = [&](Block *block) {
    block->clear();
    b.setInsertionPointToStart(block);
  };
  begin(branch.thenBlock());
  auto shared =
      scf::IfOp::create(b, loc, types, isShared, /*withElseRegion=*/true);
  scf::YieldOp::create(b, loc, shared.getResults());
  for (Block *block : {shared.thenBlock(), shared.elseBlock()}) {
    begin(block);
    IRMapping mapping(known);
    for (Operation *op : ops) {
      if (op == largest || op == loop)
        cloneOnlyIteration(b, cast<scf::ForOp>(op), mapping);
      else
        b.clone(*op, mapping);
    }
    SmallVector<Value> copies = llvm::map_to_vector(
        values, [&](Value value) { return mapping.lookupOrDefault(value); });
    scf::YieldOp::create(b, loc, copies);
    // Erase unused ops, among them loads of a next chunk.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }
  begin(branch.elseBlock());
  auto yield = scf::YieldOp::create(b, loc, values);
  for (Operation *op : ops)
    op->moveBefore(yield);
}

//===----------------------------------------------------------------------===//
// Loops over chunks
//===----------------------------------------------------------------------===//

/// Returns the ops that find the largest lse for `loop`, including the exchange
/// between groups. The first of them is the loop `largest`.
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

/// Makes each iteration of `loop` execute `loads` for the next iteration, and
/// carry the loaded values to it. The loads are placed before the op `next`.
/// `init` holds the values of the first iteration. Returns the new loop.
static scf::ForOp carryLoads(scf::ForOp loop, const ChunkLoads &loads,
                             SmallVector<Value> init, Operation *next) {
  IRRewriter rewriter(loop);
  Location loc = loop.getLoc();
  auto addStep = [&](Value index) -> Value {
    return arith::AddIOp::create(rewriter, loc, index, loop.getStep());
  };
  // Also carry the start of the next chunk, so that OverlapGrids.cpp does not
  // prefetch the second chunk together with the first. It would if the start
  // were computed from the induction variable, which is known before the wait
  // for the preceding grid.
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

/// For each of `lses`, which are loads in `largest`, finds the equal load among
/// `loads`, which are in `loop`, and returns its index there. Returns no
/// indices if `largest` is null. Returns nullopt if one of `lses` has no equal,
/// or if two copies of `loop` would be too large.
///
/// In code for groups with one chunk each, the loads at these indices replace
/// `lses`. This holds although lanes share the chunks of a group in `largest`:
/// the only chunk belongs to the first of these lanes, whose result alone
/// counts, and `loop` loads the same chunk.
static std::optional<SmallVector<size_t>> findOwn(scf::ForOp largest,
                                                  ArrayRef<Value> lses,
                                                  scf::ForOp loop,
                                                  ArrayRef<Value> loads) {
  auto most = static_cast<uint64_t>(getMachine(loop).unrolledOperations);
  if (2 * countOps(loop) > most)
    return std::nullopt;
  if (!largest)
    return SmallVector<size_t>();
  // The test whether there is a single chunk must precede `largest`, so the
  // bounds of `loop` must be available there.
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
  // The lanes load the lses of different chunks, so branches would diverge. The
  // lses are therefore loaded with predicates.
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
  // The loads of the first chunk are in flight while the largest lse is found.
  for (Operation *op : behind)
    op->moveBefore(loop);
  if (own)
    separateOnlyChunk(behind, largest, loop, hasOnlyChunk, end.getCondition(),
                      known);
  if (carriesLses)
    carryLoads(largest, lses, firstLses, &largest.getBody()->front());
}
