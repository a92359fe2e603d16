//===- SkipCopies.cpp - leave rows alone that would stay unchanged --------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/AccessPredicate.h"
#include "lib/Transforms/Language/Presence.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/DebugLog.h"

#include <limits>

#define DEBUG_TYPE "mlafix-skip-copies"

namespace mlafix {
#define GEN_PASS_DEF_SKIPCOPIESPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

namespace {
/// A store of a merged state. The merge yields `copied` unchanged if none of
/// `predicates` holds.
struct Copy {
  StoreStateOp store;
  LoadStateOp copied;
  SmallVector<Value> predicates; // predicates of the other merged states
  SmallVector<Operation *> only; // ops that only the store needs
};
} // namespace

/// Returns the condition under which `state` may differ from the identity.
/// Returns null if it always may.
static Value getPredicate(Value state) {
  if (auto load = state.getDefiningOp<LoadStateOp>())
    return load.getPredicate();
  if (auto mask = state.getDefiningOp<MaskOp>())
    return mask.getPredicate();
  return Value();
}

/// Matches a store of `merge` that is a copy in some calls. Otherwise returns
/// nullopt and sets `reason`.
static std::optional<Copy> matchCopy(StoreStateOp store, MergeOp merge,
                                     StringRef &reason) {
  auto refuse = [&](StringRef why) {
    reason = why;
    return std::nullopt;
  };
  if (!merge->hasOneUse() || merge->getBlock() != store->getBlock())
    return refuse("the merged state has other uses, or is stored in a branch");
  Copy copy = {store, {}, {}, {merge}};
  for (Value state : merge.getStates()) {
    auto load = state.getDefiningOp<LoadStateOp>();
    if (load && load->hasOneUse() && load->getBlock() == store->getBlock() &&
        !mayWriteBetween(load, store))
      copy.only.push_back(load);
    if (Value predicate = getPredicate(state)) {
      copy.predicates.push_back(predicate);
      continue;
    }
    if (copy.copied)
      return refuse("two of the states that it merges have no predicate");
    if (!load || copy.only.back() != load)
      return refuse("the state without a predicate is not loaded for the merge "
                    "alone");
    copy.copied = load;
  }
  if (!copy.copied)
    return refuse("each state has a predicate: a row may become empty");
  if (store.getPredicate())
    return refuse("the store has a predicate");
  if (store.getScale())
    return refuse("the store scales the result");
  if (store.getOut() == copy.copied.getOut())
    return refuse("the store is in place at every call");
  if (!isSameRow(store, copy.copied))
    return refuse("the store is not to where the state without a predicate "
                  "was loaded from");
  return copy;
}

/// Builds an i1 that is false if and only if the call is in place and no other
/// state is merged. If it is false, only the row's own lse can change the row
/// (see buildUnmerged()).
static Value buildChanges(OpBuilder &b, Location loc, const Copy &copy) {
  StoreStateOp store = copy.store;
  LoadStateOp load = copy.copied;
  Value yes = arith::ConstantIntOp::create(b, loc, true, 1);
  auto negate = [&](Value x) -> Value {
    return arith::XOrIOp::create(b, loc, x, yes);
  };
  Value inPlace = buildSameTensor(b, loc, store.getOut(), load.getOut());
  if (Value lse = store.getLse()) {
    Value present = buildPresent(b, loc, lse);
    Value isOmitted = present ? negate(present) : Value();
    Value kept = buildSameTensor(b, loc, lse, load.getLse());
    if (isOmitted)
      kept = arith::OrIOp::create(b, loc, kept, isOmitted);
    inPlace = arith::AndIOp::create(b, loc, inPlace, kept);
  }
  Value changes = negate(inPlace);
  for (Value predicate : copy.predicates)
    changes = arith::OrIOp::create(b, loc, changes, predicate);
  return changes;
}

/// Builds the store for a call in place that merges no other state into the
/// row. Only the row's own lse may then change the row: a row with an infinite
/// lse becomes the identity, and a row with a NaN lse becomes NaN. Rows with a
/// finite lse are not stored.
static void buildUnmerged(OpBuilder &b, Location loc, const Copy &copy) {
  StoreStateOp store = copy.store;
  LoadStateOp load = copy.copied;
  auto constant = [&](float value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  };
  float inf = std::numeric_limits<float>::infinity();
  Value lse = LoadOp::create(b, loc, b.getF32Type(), load.getLse(),
                             load.getLseIndices(), Value(), Value());
  Value magnitude = math::AbsFOp::create(b, loc, lse);
  Value isEmpty = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                        magnitude, constant(inf));
  Value isStored = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UEQ,
                                         magnitude, constant(inf));
  Value row = SplatOp::create(
      b, loc, load.getType().getTileType(),
      arith::SelectOp::create(b, loc, isEmpty, constant(0.0f), lse));
  StoreOp::create(b, loc, row, store.getOut(), store.getOutIndices(), isStored);
  if (store.getLse())
    StoreOp::create(
        b, loc, arith::SelectOp::create(b, loc, isEmpty, constant(-inf), lse),
        store.getLse(), store.getLseIndices(), isStored);
}

namespace {
class SkipCopiesPass : public mlafix::impl::SkipCopiesPassBase<SkipCopiesPass> {
public:
  void runOnOperation() override {
    SmallVector<Copy> copies;
    getOperation().walk([&](StoreStateOp store) {
      auto merge = store.getState().getDefiningOp<MergeOp>();
      if (!merge)
        return;
      auto opts = nameRemark("skip-copies", DEBUG_TYPE, getOperation());
      StringRef reason;
      if (std::optional<Copy> copy = matchCopy(store, merge, reason)) {
        unsigned argument =
            getKernelArgument(copy->copied.getOut()).getArgNumber();
        remark::passed(store.getLoc(), opts) << remark::add(
            "if a call is in place, rows on which the predicates leave only "
            "the state of {0} are neither read nor written",
            getOperation().getArgName(argument));
        copies.push_back(*copy);
        return;
      }
      LDBG() << store.getLoc() << ": no copy: " << reason;
      remark::missed(store.getLoc(), opts)
          << remark::add("every row is read and written: {0}", reason);
    });
    for (Copy &copy : copies) {
      OpBuilder b(copy.store);
      Location loc = copy.store.getLoc();
      auto branch = scf::IfOp::create(b, loc, buildChanges(b, loc, copy),
                                      /*withElseRegion=*/true);
      llvm::sort(copy.only, [](Operation *x, Operation *y) {
        return x->isBeforeInBlock(y);
      });
      b.setInsertionPointToStart(branch.elseBlock());
      buildUnmerged(b, loc, copy);
      Operation *end = branch.thenBlock()->getTerminator();
      for (Operation *op : copy.only)
        op->moveBefore(end);
      copy.store->moveBefore(end);
    }
  }
};
} // namespace
