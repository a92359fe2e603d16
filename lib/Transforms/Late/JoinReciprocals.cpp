//===- JoinReciprocals.cpp - reciprocals of a block under one check -------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Let n be the instruction's approximation of 1 / x. If x and 1 / x are normal
// numbers, n - n * (n * x - 1) is 1 / x rounded to nearest; ptxas implements
// `rcp.rn.f32` with the same two steps, behind a check of x's exponent.
// Otherwise the instruction gives 0, an infinity or NaN, and the remainder n *
// x - 1 is -1, infinite or NaN. So one comparison of the remainder is a
// sufficient check. The checks of several reciprocals form a single condition,
// evaluated after all of them.
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Passes.h"
#include "lib/Transforms/ShapedBuilder.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-join-reciprocals"

namespace mlafix {
#define GEN_PASS_DEF_JOINRECIPROCALSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// Far above the instruction's error, far below 1.
static constexpr float kLargestRest = 0x1p-20f;

/// True for 1 / x of one f32, correctly rounded.
static bool isReciprocal(Operation &op) {
  auto division = dyn_cast<arith::DivFOp>(op);
  if (!division || division.getFastmath() != arith::FastMathFlags::none ||
      !matchPattern(division.getLhs(), m_OneFloat()))
    return false;
  auto vector = dyn_cast<VectorType>(division.getType());
  return getElementTypeOrSelf(division.getType()).isF32() &&
         (!vector || vector.getNumElements() == 1);
}

namespace {
/// Reciprocals in a block, and the ops behind the first that depend on them.
class JoinedReciprocals {
public:
  bool takes(Operation &op) const;
  void add(Operation &op) {
    if (isReciprocal(op))
      reciprocals.push_back(cast<arith::DivFOp>(op));
    if (isReciprocal(op) || needs(op))
      ops.insert(&op);
  }
  void join();

private:
  bool needs(Operation &op) const;
  Value buildNear(arith::DivFOp op);
  llvm::SetVector<Operation *> findBetween() const;

  SmallVector<arith::DivFOp> reciprocals;
  llvm::SetVector<Operation *> ops;
  Value holds; ///< i1: all approximations are correctly rounded
};
} // namespace

/// True if `op`, or an op nested in it, uses a result of `ops`.
bool JoinedReciprocals::needs(Operation &op) const {
  return op
      .walk([&](Operation *inner) {
        return llvm::any_of(inner->getOperands(),
                            [&](Value value) {
                              return ops.contains(value.getDefiningOp());
                            })
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// True if `op` may end up behind reciprocals that are joined later in the
/// block: it does not depend on them, or can be moved and recomputed.
bool JoinedReciprocals::takes(Operation &op) const {
  return !needs(op) || (isPure(&op) && op.getNumRegions() == 0);
}

/// The approximate reciprocal, in the shape of `op`.
Value JoinedReciprocals::buildNear(arith::DivFOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value x = op.getRhs();
  bool isVector = isa<VectorType>(x.getType());
  if (isVector)
    x = vector::ExtractOp::create(b, loc, x, 0);
  ShapedBuilder s(b, loc, x.getType());
  Value near = buildNearReciprocal(b, loc, x);
  Value rest = s.fma(x, near, s.f(-1.0f));
  Value off = math::AbsFOp::create(b, loc, rest);
  Value isNear = s.cmp(arith::CmpFPredicate::OLT, off, s.f(kLargestRest));
  holds = holds ? s.op<arith::AndIOp>(holds, isNear) : isNear;
  Value result = s.fma(near, arith::NegFOp::create(b, loc, rest), near);
  return isVector ? vector::BroadcastOp::create(b, loc, op.getType(), result)
                  : result;
}

/// The reciprocals, and the ops on paths between them.
llvm::SetVector<Operation *> JoinedReciprocals::findBetween() const {
  llvm::SmallPtrSet<Operation *, 8> found(reciprocals.begin(),
                                          reciprocals.end());
  for (Operation *op : llvm::reverse(ops))
    if (llvm::any_of(op->getUsers(),
                     [&](Operation *user) { return found.contains(user); }))
      found.insert(op);
  llvm::SetVector<Operation *> between;
  for (Operation *op : ops)
    if (found.contains(op))
      between.insert(op);
  return between;
}

void JoinedReciprocals::join() {
  if (reciprocals.size() < 2)
    return;
  LDBG() << reciprocals.size() << " under one check: " << reciprocals.front();
  arith::DivFOp last = reciprocals.back();
  Location loc = last.getLoc();
  llvm::SetVector<Operation *> between = findBetween();
  SmallVector<OpOperand *> uses; // uses by the branch's yield
  llvm::SetVector<Value> yielded;
  for (Operation *op : between)
    for (OpOperand &use : op->getResult(0).getUses())
      if (!between.contains(use.getOwner())) {
        uses.push_back(&use);
        yielded.insert(op->getResult(0));
      }

  // The exact reciprocals, from values known before the first one.
  OpBuilder b(last->getContext());
  b.setInsertionPointAfter(last);
  auto branch = scf::IfOp::create(
      b, loc, TypeRange(ValueRange(yielded.getArrayRef())),
      arith::ConstantIntOp::create(b, loc, 1, 1), /*withElseRegion=*/true);
  OpBuilder slow = branch.getElseBodyBuilder();
  IRMapping exact;
  for (Operation *op : between)
    slow.clone(*op, exact);
  auto get = [&](const IRMapping &mapping) {
    return llvm::map_to_vector(
        yielded, [&](Value value) { return mapping.lookupOrDefault(value); });
  };
  scf::YieldOp::create(slow, loc, get(exact));

  for (OpOperand *use : uses)
    use->set(branch.getResult(
        std::distance(yielded.begin(), llvm::find(yielded, use->get()))));
  Operation *place = branch;
  for (Operation *op : ops)
    if (!between.contains(op) && op->isBeforeInBlock(branch)) {
      op->moveAfter(place);
      place = op;
    }
  IRMapping near;
  for (arith::DivFOp op : reciprocals) {
    Value value = buildNear(op);
    near.map(op.getResult(), value);
    op.getResult().replaceAllUsesWith(value);
  }
  OpBuilder fast = branch.getThenBodyBuilder();
  scf::YieldOp::create(fast, loc, get(near));
  branch.getConditionMutable().assign(holds);
  for (arith::DivFOp op : reciprocals)
    op.erase();
}

namespace {
class JoinReciprocalsPass
    : public mlafix::impl::JoinReciprocalsPassBase<JoinReciprocalsPass> {
public:
  void runOnOperation() override {
    SmallVector<JoinedReciprocals> all;
    getOperation().walk([&](Block *block) {
      all.emplace_back();
      for (Operation &op : *block) {
        if (!all.back().takes(op))
          all.emplace_back();
        all.back().add(op);
      }
    });
    for (JoinedReciprocals &joined : all)
      joined.join();
  }
};
} // namespace
