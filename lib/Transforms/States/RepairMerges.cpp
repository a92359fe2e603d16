//===- RepairMerges.cpp - repair infinities of weight zero ----------------===//
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
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-repair-merges"

namespace mlafix {
#define GEN_PASS_DEF_REPAIRMERGESPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// Returns true if `loop` carries a single state and nothing else.
static bool carriesState(scf::ForOp loop) {
  return loop.getNumRegionIterArgs() == 1 &&
         isa<StateType>(loop.getRegionIterArg(0).getType());
}

static bool isTreeOp(Operation *op) {
  auto loop = dyn_cast_if_present<scf::ForOp>(op);
  return isa_and_present<MergeOp>(op) || (loop && carriesState(loop));
}

static bool onlyReads(scf::ForOp loop) {
  return !anyOp(loop, [](Operation *op) {
    return !isPure(op) && !isa<LoadOp, LoadStateOp>(op) &&
           !op->hasTrait<OpTrait::HasRecursiveMemoryEffects>();
  });
}

namespace {
/// The merges, and loops of merges, that together compute one state, the root.
/// The states that they merge are the leaves of the tree.
class MergeTree {
public:
  explicit MergeTree(Value root) : root(root) {}

  /// Collects the tree. Returns false and sets `reason` if the leaves cannot be
  /// merged again in a branch after the root.
  bool collect(StringRef &reason);
  /// Returns true if later passes leave a loop of the tree that weighs a state
  /// more than once. `machine` is the model of a GPU, or null for CPUs.
  bool isNested(const MachineModel *machine) const;
  /// Clones the tree at the insertion point. Returns the new root.
  Value clone(OpBuilder &b) const;
  /// Rewrites the tree so that it merges every leaf relative to `reference`.
  /// Returns the new root.
  Value rewrite(Value reference);

  llvm::SetVector<Operation *> ops;
  /// Operands of `ops` that are results of other ops of the tree.
  SmallVector<OpOperand *> links;

private:
  bool collect(Operation *op);
  bool collect(OpOperand &operand);
  bool isInLoop(Value value) const;
  bool isOutsideOfLoop(Operation *op, Operation *user) const;
  void clone(OpBuilder &b, Value state, IRMapping &mapping) const;
  Value mergeTo(Value running, Value state, Operation *user);
  /// Returns true if mergeTo() need not merge `state`: it is an identity, or a
  /// value that a loop of the tree carries and that has been merged already.
  bool addsNothing(Value state) const {
    auto argument = dyn_cast<BlockArgument>(state);
    return state.getDefiningOp<IdentityOp>() ||
           (argument && ops.contains(argument.getOwner()->getParentOp()));
  }
  bool refuse(StringRef why) {
    reason = why;
    return false;
  }

  Value root;
  StringRef reason;
  SmallVector<Value> leaves;
};
} // namespace

bool MergeTree::collect(StringRef &why) {
  bool isWhole =
      collect(root.getDefiningOp()) && llvm::all_of(leaves, [&](Value leaf) {
        return isKnownWithoutRows(
            leaf, [&](Value value) { return isInLoop(value); }, reason);
      });
  Operation *last = root.getDefiningOp();
  for (Operation *op : ops)
    if (isWhole && op != last && op->getBlock() == last->getBlock() &&
        mayWriteBetween(op, last))
      isWhole = refuse("rows are stored between the states that are merged");
  // No loop around the merge may store: stores by one lane of a row in earlier
  // iterations are not visible to the other lanes, which load the leaves again.
  for (auto loop = last->getParentOfType<scf::ForOp>(); isWhole && loop;
       loop = loop->getParentOfType<scf::ForOp>())
    if (!onlyReads(loop))
      isWhole = refuse("a loop around the merge stores");
  why = reason;
  return isWhole;
}

bool MergeTree::collect(OpOperand &operand) {
  Value state = operand.get();
  Operation *op = state.getDefiningOp();
  // In a loop, a state with other uses stays a leaf. So does a state from
  // outside the loop that each iteration merges again.
  bool isShared = isInLoop(state) && !state.hasOneUse();
  if (!isTreeOp(op) || isShared || isOutsideOfLoop(op, operand.getOwner())) {
    leaves.push_back(state);
    return true;
  }
  links.push_back(&operand);
  return collect(op);
}

bool MergeTree::collect(Operation *op) {
  if (!ops.insert(op))
    return refuse("a merged state is merged twice");
  if (isa<MergeOp>(op))
    return llvm::all_of(op->getOpOperands(),
                        [&](OpOperand &operand) { return collect(operand); });
  auto loop = cast<scf::ForOp>(op);
  if (!collect(loop.getInitArgsMutable()[0]) ||
      !collect(loop.getBody()->getTerminator()->getOpOperand(0)))
    return false;
  Value carried = loop.getRegionIterArg(0);
  if (!carried.hasOneUse() || !llvm::is_contained(leaves, carried))
    return refuse("a loop does more with the state it carries than to merge "
                  "into it");
  llvm::erase(leaves, carried);
  return onlyReads(loop) || refuse("the loop of the merge stores");
}

/// Returns true if `value` is computed inside one of the tree's loops.
bool MergeTree::isInLoop(Value value) const {
  return llvm::any_of(ops, [&](Operation *op) {
    return isa<scf::ForOp>(op) &&
           op->isAncestor(value.getParentRegion()->getParentOp());
  });
}

/// Returns true if `user` is inside one of the tree's loops and `op` is not.
bool MergeTree::isOutsideOfLoop(Operation *op, Operation *user) const {
  return llvm::any_of(ops, [&](Operation *loop) {
    return loop->isProperAncestor(user) && !loop->isProperAncestor(op);
  });
}

bool MergeTree::isNested(const MachineModel *machine) const {
  return llvm::any_of(ops, [&](Operation *op) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop || !machine)
      return bool(loop);
    // If the tree is one loop and its merge, mlafix-chunk-merges may weigh each
    // state of the loop only once.
    bool isAlone = ops.size() == 2 && isWeighedOnce(loop, *machine);
    return !isAlone && !isUnrolledWhole(loop, *machine);
  });
}

void MergeTree::clone(OpBuilder &b, Value state, IRMapping &mapping) const {
  Operation *op = state.getDefiningOp();
  if (!op || !ops.contains(op) || isInLoop(state) || mapping.contains(state))
    return;
  // A loop is cloned with its body. So the only state among its operands is the
  // initial value.
  for (Value operand : op->getOperands())
    clone(b, operand, mapping);
  b.clone(*op, mapping);
}

Value MergeTree::clone(OpBuilder &b) const {
  IRMapping mapping;
  clone(b, root, mapping);
  return mapping.lookup(root);
}

/// Merges `state` relative to `running`, which includes all states before it.
/// Creates the merges before `user`. Returns the new running state.
Value MergeTree::mergeTo(Value running, Value state, Operation *user) {
  Operation *op = state.getDefiningOp();
  OpBuilder b(user);
  if (addsNothing(state))
    return running;
  if (!op || !ops.contains(op))
    return MergeOp::create(b, state.getLoc(), running.getType(),
                           ValueRange{running, state}, /*to_first=*/true);
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    loop.getInitArgsMutable()[0].assign(
        mergeTo(running, loop.getInitArgs()[0], loop));
    Operation *yield = loop.getBody()->getTerminator();
    yield->setOperand(
        0, mergeTo(loop.getRegionIterArg(0), yield->getOperand(0), yield));
    return loop.getResult(0);
  }
  // First merge the operands that loops and merges compute, in the order of the
  // program, then the leaves, in the order of the operands.
  SmallVector<Value> inner, outer = {Value()};
  for (Value operand : cast<MergeOp>(op).getStates()) {
    Operation *from = operand.getDefiningOp();
    if (from && ops.contains(from))
      inner.push_back(operand);
    else if (!addsNothing(operand))
      outer.push_back(operand);
  }
  llvm::stable_sort(inner, [](Value x, Value y) {
    return x.getDefiningOp()->isBeforeInBlock(y.getDefiningOp());
  });
  for (Value operand : inner)
    running = mergeTo(running, operand, op);
  if (outer.size() == 1)
    return running;
  outer.front() = running;
  b.setInsertionPoint(op);
  return MergeOp::create(b, op->getLoc(), running.getType(), outer,
                         /*to_first=*/true);
}

Value MergeTree::rewrite(Value reference) {
  Value merged = mergeTo(reference, root, root.getDefiningOp());
  // `ops` starts with the root. Erasing a merge removes the last uses of the
  // merges that compute its operands.
  for (Operation *op : ops)
    if (isa<MergeOp>(op) && op->use_empty())
      op->erase();
  return merged;
}

/// Prevents LLVM from unrolling the loops in `branch`, which few rows enter.
static void keepSmall(scf::IfOp branch) {
  MLIRContext *context = branch.getContext();
  auto none = LLVM::LoopUnrollAttr::get(
      context, /*disable=*/BoolAttr::get(context, true), {}, {}, {}, {}, {},
      {});
  branch.walk([&](scf::ForOp loop) { setUnrolling(loop, none); });
}

/// Returns true if `user` depends only on the lse of its state.
static bool needsLseAlone(Operation *user) {
  if (auto rebase = dyn_cast<RebaseOp>(user))
    return llvm::all_of(rebase->getUsers(), needsLseAlone);
  return isa<LseOfOp, MaxOfOp>(user);
}

namespace {
class RepairMergesPass
    : public mlafix::impl::RepairMergesPassBase<RepairMergesPass> {
public:
  using RepairMergesPassBase::RepairMergesPassBase;

  void runOnOperation() override {
    FailureOr<MachineModel> model = getMachine(getOperation(), target, machine);
    if (failed(model))
      return signalPassFailure();
    // Each kernel starts with an empty set, because its operands may have the
    // addresses of erased operands of an earlier kernel.
    Links done;
    SmallVector<Operation *> candidates;
    getOperation().walk([&](Operation *op) {
      if (isTreeOp(op))
        candidates.push_back(op);
    });
    // Visit a root before the ops that compute its operands.
    for (Operation *op : llvm::reverse(candidates))
      repair(op->getResult(0), isGPU(target) ? &*model : nullptr, done);
  }

private:
  /// Links of trees that are already repaired.
  using Links = llvm::SmallPtrSet<OpOperand *, 16>;

  /// Repairs the merges that compute `root`, if needed, and adds their links to
  /// `done`. `unrolls` is the model of a GPU, or null for CPUs.
  void repair(Value root, const MachineModel *unrolls, Links &done);
};
} // namespace

void RepairMergesPass::repair(Value root, const MachineModel *unrolls,
                              Links &done) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : root.getUses())
    if (!needsLseAlone(use.getOwner()) && !done.contains(&use))
      uses.push_back(&use);
  MergeTree tree(root);
  StringRef reason;
  bool isKnown = tree.collect(reason);
  if (uses.empty() || !tree.isNested(unrolls))
    return;
  auto opts = nameRemark("repair-merges", DEBUG_TYPE, getOperation());
  Location loc = root.getLoc();
  if (!isKnown) {
    LDBG() << loc << ": left as it is, since " << reason;
    remark::missed(loc, opts) << remark::add(
        "an infinite payload reaches the result as soon as its state has a "
        "weight, even if its final weight is 0: {0}",
        reason);
    return;
  }
  remark::passed(loc, opts) << remark::add(
      "elements that are not finite are merged again, each state weighed once "
      "against the largest lse");
  done.insert_range(tree.links);

  OpBuilder b(&getContext());
  b.setInsertionPointAfter(root.getDefiningOp());
  Value isBad = HasNonfiniteOp::create(b, loc, root);
  auto branch = scf::IfOp::create(b, loc, root.getType(), isBad,
                                  /*withElseRegion=*/true);
  for (OpOperand *use : uses)
    use->set(branch.getResult(0));
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, root);
  b.setInsertionPointToStart(branch.thenBlock());
  Value max = MaxOfOp::create(b, loc, root);
  Value reference = ReferenceOp::create(b, loc, root.getType(), max);
  MergeTree again(tree.clone(b));
  [[maybe_unused]] bool isSame = again.collect(reason);
  assert(isSame && "expected a copy to be what it is a copy of");
  Value merged = again.rewrite(reference);
  keepSmall(branch);
  Value whole = RepairOp::create(b, loc, root, merged);
  scf::YieldOp::create(b, loc, whole);
}
