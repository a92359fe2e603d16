//===- UnswitchLoop.cpp - a loop without conditions for most rows ---------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/DistributeLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlafix;

/// Whether all elements are one constant: what takes the place of a row that is
/// not there.
static bool isConstantSplat(Value value) {
  if (auto broadcast = value.getDefiningOp<vector::BroadcastOp>())
    value = broadcast.getSource();
  return matchPattern(value, m_Constant());
}

/// What `op` does to most rows, if a condition decides it: it moves them.
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

void mlafix::unswitchLoop(scf::ForOp loop) {
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
