//===- RowInvariantScalars.cpp - scalars that need no row -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Layout/RowInvariantScalars.h"
#include "lib/Transforms/Layout/LongRows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlafix;

bool mlafix::isLongScalar(Operation *op) {
  return isa<arith::DivFOp, math::ExpOp, math::Exp2Op, math::LogOp,
             math::Log2Op, math::SqrtOp, math::RsqrtOp, math::TanhOp>(op);
}

RowInvariantScalars::RowInvariantScalars(Block &row) {
  auto isEarly = [&](Value value) {
    Operation *def = value.getDefiningOp();
    return !def || def->getBlock() != &row || ops.contains(def);
  };
  for (Operation &op : row.without_terminator()) {
    if (isTileOp(&op) || !llvm::all_of(op.getOperands(), isEarly))
      continue;
    ops.insert(&op);
    bool usesCheap = llvm::all_of(op.getOperands(), [&](Value operand) {
      Operation *def = operand.getDefiningOp();
      return !def || def->getBlock() != &row || cheap.contains(def);
    });
    if (usesCheap && isMemoryEffectFree(&op) && !isLongScalar(&op))
      cheap.insert(&op);
  }

  for (Operation *op : ops)
    if (!isCheap(op) && op->getNumResults() == 1 &&
        llvm::any_of(op->getUsers(),
                     [&](Operation *user) { return !contains(user); }))
      needed.insert(op->getResult(0));
  for (Value value : needed) {
    auto compare = value.getDefiningOp<arith::CmpFOp>();
    if (compare && llvm::all_of(compare->getOperands(), [&](Value operand) {
          return needed.contains(operand) ||
                 matchPattern(operand, m_Constant());
        }))
      compares.insert(compare);
  }
  needed.remove_if(
      [&](Value value) { return compares.contains(value.getDefiningOp()); });
}
