//===- ChunkMerges.cpp - merge states in chunks ---------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Remarks.h"
#include "lib/Transforms/States/RunningMerge.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-chunk-merges"

namespace mlafix {
#define GEN_PASS_DEF_CHUNKMERGESPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// Clones the iteration at `index` and appends the states that it merges to
/// `chunk`. Where `exists` (i1) is false, the loads do not execute and the
/// states are the identity.
static void appendIteration(OpBuilder &b, scf::ForOp loop, MergeOp merge,
                            Value index, Value exists,
                            SmallVector<Value> &chunk) {
  IRMapping mapping = cloneIteration(b, loop, merge, index, exists);
  for (Value state : merge.getStates()) {
    if (state == loop.getRegionIterArg(0))
      continue;
    Value copy = mapping.lookupOrDefault(state);
    // A loaded state needs no mask: it is already the identity where the
    // predicate of its load is false.
    if (copy == state || !copy.getDefiningOp<LoadStateOp>())
      copy = MaskOp::create(b, merge.getLoc(), copy, exists);
    chunk.push_back(copy);
  }
}

/// Creates a merge loop over chunks of `size` iterations of `loop`. `build`
/// computes the value of a chunk from the states of its iterations.
static MergeLoopOp
createChunks(OpBuilder &b, scf::ForOp loop, MergeOp merge, int64_t size,
             Value init, bool isToFirst,
             function_ref<Value(ArrayRef<Value> states)> build) {
  Location loc = loop.getLoc();
  auto chunks = MergeLoopOp::create(b, loc, init.getType(),
                                    loop.getLowerBound(), loop.getUpperBound(),
                                    size, init, BaseAttr(), isToFirst);
  OpBuilder::InsertionGuard guard(b);
  Block &block = chunks.getBody().emplaceBlock();
  Value first = block.addArgument(b.getIndexType(), loc);
  b.setInsertionPointToStart(&block);
  // The bounds are not negative, so the difference does not overflow.
  Value left = arith::SubIOp::create(b, loc, loop.getUpperBound(), first);
  SmallVector<Value> states;
  for (int64_t i = 0; i < size; ++i) {
    Value offset = arith::ConstantIndexOp::create(b, loc, i);
    Value exists =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, offset, left);
    Value index = arith::AddIOp::create(b, loc, first, offset);
    appendIteration(b, loop, merge, index, exists, states);
  }
  YieldOp::create(b, loc, build(states));
  return chunks;
}

/// Builds a mlafix.reference of the largest lse of all states that `loop`
/// merges, including its initial state. The states are later weighed against
/// this lse.
static Value findLargest(OpBuilder &b, scf::ForOp loop, MergeOp merge,
                         int64_t size) {
  Location loc = merge.getLoc();
  Value init = MaxOfOp::create(b, loc, loop.getInitArgs()[0]);
  auto largest = createChunks(
      b, loop, merge, size, init, /*isToFirst=*/false,
      [&](ArrayRef<Value> states) {
        Value all;
        for (Value state : states) {
          Value lse = MaxOfOp::create(b, loc, state);
          all = all ? arith::MaximumFOp::create(b, loc, all, lse) : lse;
        }
        return all;
      });
  return ReferenceOp::create(b, loc, merge.getType(), largest.getResult(0));
}

static void chunk(scf::ForOp loop, MergeOp merge, const MachineModel &machine) {
  OpBuilder b(loop);
  Location loc = merge.getLoc();
  int64_t size = machine.chunkIterations;
  Value init = loop.getInitArgs()[0], reference;
  if (isWeighedOnce(loop, machine)) {
    reference = findLargest(b, loop, merge, size);
    init = init.getDefiningOp<IdentityOp>()
               ? reference
               : MergeOp::create(b, loc, merge.getType(),
                                 ValueRange{reference, init},
                                 /*to_first=*/true);
  }
  auto chunks =
      createChunks(b, loop, merge, size, init, /*isToFirst=*/bool(reference),
                   [&](ArrayRef<Value> states) -> Value {
                     SmallVector<Value> all(states);
                     if (reference)
                       all.insert(all.begin(), reference);
                     return MergeOp::create(b, loc, merge.getType(), all,
                                            /*to_first=*/bool(reference));
                   });
  loop.replaceAllUsesWith(chunks.getResults());
  loop.erase();
}

namespace {
class ChunkMergesPass
    : public mlafix::impl::ChunkMergesPassBase<ChunkMergesPass> {
public:
  using ChunkMergesPassBase::ChunkMergesPassBase;

  void runOnOperation() override {
    FailureOr<MachineModel> model = getMachine(getOperation(), target, machine);
    if (failed(model))
      return signalPassFailure();
    SmallVector<std::pair<scf::ForOp, MergeOp>> loops;
    getOperation().walk([&](scf::ForOp loop) {
      if (isInRepair(loop))
        return;
      if (MergeOp merge = chooseLoop(loop, *model))
        loops.push_back({loop, merge});
    });
    for (auto [loop, merge] : loops)
      chunk(loop, merge, *model);
  }

private:
  MergeOp chooseLoop(scf::ForOp loop, const MachineModel &model);
};
} // namespace

/// Returns the running merge of `loop` if the loop should be split into chunks,
/// else null.
MergeOp ChunkMergesPass::chooseLoop(scf::ForOp loop,
                                    const MachineModel &model) {
  auto opts = nameRemark("chunk-merges", DEBUG_TYPE, getOperation());
  bool carriesState =
      llvm::any_of(loop.getResultTypes(), llvm::IsaPred<StateType>);
  std::optional<APInt> trips = loop.getStaticTripCount();
  if (isLeftToUnroll(loop, model)) {
    if (carriesState)
      remark::analysis(loop.getLoc(), opts) << remark::add(
          "a running merge of {0} states is left to be "
          "unrolled: their rows have {1} bytes in all",
          trips->getSExtValue(), trips->getSExtValue() * countRowBytes(loop));
    return {};
  }
  StringRef reason;
  MergeOp merge = getChunkedMerge(loop, reason);
  if (merge) {
    remark::passed(loop.getLoc(), opts)
        << remark::add("a running merge goes by chunks of {0} states, which "
                       "groups of lanes may share",
                       model.chunkIterations);
    return merge;
  }
  LDBG() << loop.getLoc() << ": left as it is, since " << reason;
  if (carriesState)
    remark::missed(loop.getLoc(), opts) << remark::add(
        "a running merge takes one state after the other: {0}", reason);
  return {};
}
