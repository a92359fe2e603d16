//===- DelayReads.cpp - read rows once their lse is known -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/AccessPredicate.h"
#include "lib/Transforms/Layout/LongRows.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Remarks.h"
#include "lib/Transforms/Rows/RowAccess.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/DebugLog.h"

#include <limits>

#define DEBUG_TYPE "mlafix-delay-reads"

namespace mlafix {
#define GEN_PASS_DEF_DELAYREADSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

namespace {
/// A merge of two states whose result may be stored in place of one of them,
/// `updated`.
struct InPlaceMerge {
  StoreStateOp store;
  LoadStateOp updated;
};
} // namespace

/// Matches an InPlaceMerge. If the store has another form, returns nullopt and
/// sets `reason`.
static std::optional<InPlaceMerge> matchMerge(StoreStateOp store, MergeOp merge,
                                              StringRef &reason) {
  auto refuse = [&](StringRef why) {
    reason = why;
    return std::nullopt;
  };
  if (!merge->hasOneUse() || merge.getStates().size() != 2)
    return refuse("the merge has one state or more than two, or its result is "
                  "used again");
  auto first = merge.getStates()[0].getDefiningOp<LoadStateOp>(),
       second = merge.getStates()[1].getDefiningOp<LoadStateOp>();
  if (!first || !second || first == second)
    return refuse("the merge is not of two different loaded states");
  // The row size must be known, because it decides whether a call is small.
  if (!getTileDim(first.getType().getTileType()).isBound())
    return refuse("the size of a row is not bound");
  for (auto [updated, other] : {std::pair(second, first), {first, second}})
    if (isSameRow(store, updated) && !updated.getPredicate() &&
        other.getOut() != store.getOut()) {
      if (updated->hasOneUse())
        return InPlaceMerge{store, updated};
      return refuse("the state that is replaced is used again");
    }
  return refuse("no state without a predicate is loaded from where it is "
                "stored");
}

/// Builds an i1 that is true if the grid's rows, of `rowBytes` bytes each, have
/// at most `smallBytes` bytes in total and so fit into the cache.
static Value buildIsSmall(OpBuilder &b, Location loc, ForallOp grid,
                          int64_t rowBytes, int64_t smallBytes) {
  Value rows = arith::ConstantIndexOp::create(b, loc, 1);
  for (Value extent : grid.getExtents())
    rows = arith::MulIOp::create(b, loc, rows, extent);
  return arith::CmpIOp::create(
      b, loc, arith::CmpIPredicate::ule, rows,
      arith::ConstantIndexOp::create(b, loc, smallBytes / rowBytes));
}

/// Replaces the load of `merge.updated` by two loads of the row, only one of
/// which executes. If the call is in place and large, the row is loaded after
/// the lse, and only if the lse is finite. Otherwise the row is loaded without
/// waiting for the lse.
static void delay(InPlaceMerge merge, ForallOp grid, int64_t smallBytes) {
  LoadStateOp load = merge.updated;
  OpBuilder b(load);
  Location loc = load.getLoc();
  auto tile = load.getType().getTileType();
  int64_t rowBytes = getRowBytes(tile, getElementTypeOrSelf(load.getOut()));
  Value yes = arith::ConstantIntOp::create(b, loc, true, 1);
  // Null if the state is always loaded. Where `condition` is false, the state
  // gets the lse -inf, so that it is empty.
  Value condition = statePredicate(b, load);
  Value isLarge = arith::XOrIOp::create(
      b, loc, buildIsSmall(b, loc, grid, rowBytes, smallBytes), yes);
  Value isLate =
      both(b, loc, isLarge,
           buildSameTensor(b, loc, merge.store.getOut(), load.getOut()));
  Value isEarly = arith::XOrIOp::create(b, loc, isLate, yes);

  float inf = std::numeric_limits<float>::infinity();
  auto constant = [&](float value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  };
  auto loadRow = [&](Value predicate) -> Value {
    return LoadOp::create(b, loc, tile, load.getOut(), load.getOutIndices(),
                          predicate, Value());
  };
  auto loadLse = [&]() -> Value {
    return LoadOp::create(b, loc, b.getF32Type(), load.getLse(),
                          load.getLseIndices(), condition,
                          condition ? constant(-inf) : Value());
  };
  Value early = loadRow(both(b, loc, condition, isEarly));
  auto branch = scf::IfOp::create(b, loc, TypeRange{tile}, isLate,
                                  /*withElseRegion=*/true);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, early);
  b.setInsertionPointToStart(branch.thenBlock());
  // An infinite lse of either sign means an empty state, whose row is not read.
  Value isHeld = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE,
                                       math::AbsFOp::create(b, loc, loadLse()),
                                       constant(inf));
  scf::YieldOp::create(b, loc, loadRow(both(b, loc, condition, isHeld)));
  b.setInsertionPoint(load);
  Value row = branch.getResult(0);
  // Load the lse again (from L1), behind the branch that loads it. With a
  // single load in front of the branch, code before the branch would wait for
  // the lse.
  Value lse = loadLse();
  Value state = MakeStateOp::create(b, loc, load.getType(), row, lse);
  load.replaceAllUsesWith(state);
  load.erase();
}

namespace {
class DelayReadsPass : public mlafix::impl::DelayReadsPassBase<DelayReadsPass> {
public:
  using DelayReadsPassBase::DelayReadsPassBase;

  void runOnOperation() override {
    FailureOr<MachineModel> model = getMachine(getOperation(), target, machine);
    if (failed(model))
      return signalPassFailure();
    auto grid = dyn_cast_or_null<ForallOp>(getOperation().getGrid());
    if (!grid)
      return;
    // A merge accesses three tensors, so each may take a third of L2.
    int64_t smallBytes = std::min(model->smallBytes, model->l2Bytes / 3);
    SmallVector<InPlaceMerge> merges;
    grid.walk([&](StoreStateOp store) {
      if (auto merge = store.getState().getDefiningOp<MergeOp>())
        if (auto found = chooseMerge(store, merge, smallBytes))
          merges.push_back(*found);
    });
    for (InPlaceMerge merge : merges)
      delay(merge, grid, smallBytes);
  }

private:
  std::optional<InPlaceMerge> chooseMerge(StoreStateOp store, MergeOp merge,
                                          int64_t smallBytes);
};
} // namespace

/// Matches the store of `merge` if the read of the updated state should be
/// delayed. Returns nullopt otherwise.
std::optional<InPlaceMerge> DelayReadsPass::chooseMerge(StoreStateOp store,
                                                        MergeOp merge,
                                                        int64_t smallBytes) {
  KernelOp kernel = getOperation();
  auto opts = nameRemark("delay-reads", DEBUG_TYPE, kernel);
  StringRef reason;
  std::optional<InPlaceMerge> found = matchMerge(store, merge, reason);
  if (!found) {
    LDBG() << store.getLoc() << ": nothing delayed: " << reason;
    remark::missed(store.getLoc(), opts)
        << remark::add("no row is read later than the others: {0}", reason);
    return found;
  }
  unsigned argument = getKernelArgument(found->updated.getOut()).getArgNumber();
  remark::passed(store.getLoc(), opts) << remark::add(
      "if a call is in place and a tensor has more than {0} bytes, a row of "
      "{1} is read after its lse, and not at all if its state is empty",
      smallBytes, kernel.getArgName(argument));
  return found;
}
