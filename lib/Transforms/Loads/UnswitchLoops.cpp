//===- UnswitchLoops.cpp - loops without masks for most rows --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-unswitch-loops"

namespace mlafix {
#define GEN_PASS_DEF_UNSWITCHLOOPSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// Returns true if `value` is a splat constant, which replaces a row that is
/// masked off.
static bool isConstantSplat(Value value) {
  if (auto broadcast = value.getDefiningOp<vector::BroadcastOp>())
    value = broadcast.getSource();
  return matchPattern(value, m_Constant());
}

/// Returns the condition that masks `op`, and the value of the condition for
/// which the row is accessed. This is the common case. Returns nullopt if
/// nothing masks `op`.
static std::optional<std::pair<Value, bool>> getCommonCase(Operation *op) {
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return std::pair(branch.getCondition(), true);
  auto select = dyn_cast<arith::SelectOp>(op);
  if (!select || !isa<VectorType>(select.getType()) ||
      !select.getCondition().getType().isInteger(1))
    return std::nullopt;
  bool isFirst = isConstantSplat(select.getTrueValue()),
       isSecond = isConstantSplat(select.getFalseValue());
  if (isFirst == isSecond)
    return std::nullopt;
  return std::pair(select.getCondition(), isSecond);
}

/// Returns true if `loop` walks over the packs of a row: its bounds are
/// constants, and it accesses the pack at its induction variable.
static bool walksPacks(scf::ForOp loop) {
  if (!matchPattern(loop.getLowerBound(), m_Constant()) ||
      !matchPattern(loop.getUpperBound(), m_Constant()))
    return false;
  bool isAtIndex = true, accesses = false;
  loop.getBody()->walk([&](Operation *op) {
    if (!isa<vector::LoadOp, vector::StoreOp>(op))
      return;
    accesses = true;
    isAtIndex &= op->getOperands().back() == loop.getInductionVar();
  });
  return accesses && isAtIndex;
}

/// Adds a copy of `loop`, a loop over the packs of a row, in which conditions
/// that are the same for every pack have their common values (getCommonCase). A
/// branch takes the copy if all these conditions have their common values, so
/// they are tested once per row.
static void unswitchLoop(scf::ForOp loop) {
  llvm::MapVector<Value, bool> common;
  llvm::SmallDenseSet<Value> contested;
  loop.getBody()->walk([&](Operation *op) {
    auto found = getCommonCase(op);
    if (!found || !loop.isDefinedOutsideOfLoop(found->first) ||
        matchPattern(found->first, m_Constant()))
      return;
    if (common.insert(*found).first->second != found->second)
      contested.insert(found->first);
  });
  common.remove_if(
      [&](auto &entry) { return contested.contains(entry.first); });
  if (common.empty() || loop.getNumResults() != 0)
    return;

  LDBG() << common.size() << " conditions decided ahead of a loop";
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  IRMapping mapping;
  Value all;
  for (auto [condition, value] : common) {
    auto truth = arith::ConstantIntOp::create(b, loc, value, 1);
    mapping.map(condition, truth);
    Value holds = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                        condition, truth);
    all = all ? Value(arith::AndIOp::create(b, loc, all, holds)) : holds;
  }
  auto branch = scf::IfOp::create(b, loc, all, /*withElseRegion=*/true);
  branch.getThenBodyBuilder().clone(*loop, mapping);
  loop->moveBefore(branch.elseBlock()->getTerminator());
}

namespace {
class UnswitchLoopsPass
    : public mlafix::impl::UnswitchLoopsPassBase<UnswitchLoopsPass> {
public:
  void runOnOperation() override {
    if (isGPU(getTarget(getOperation())))
      return;
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) {
      if (walksPacks(loop))
        loops.push_back(loop);
    });
    llvm::for_each(loops, unswitchLoop);
  }
};
} // namespace
