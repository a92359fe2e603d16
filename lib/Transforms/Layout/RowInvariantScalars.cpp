//===- RowInvariantScalars.cpp - scalars that need no row -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Layout/RowInvariantScalars.h"
#include "dialect/Guards.h"
#include "lib/Analysis/Aliasing.h"
#include "lib/Transforms/Layout/LongRows.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlafix;

static bool isElementwiseScalar(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1;
}

/// Returns true if `op` is so slow that it pays to compute it for several rows
/// at once, as a vector.
static bool isLong(Operation *op) {
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
    if (usesCheap && isMemoryEffectFree(&op) && !isLong(&op))
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

//===----------------------------------------------------------------------===//
// Choice of kernels
//===----------------------------------------------------------------------===//

/// Returns true if two arguments may alias in a call of `kernel`.
static bool mayBeSame(KernelOp kernel, ArrayAttr aliases, int64_t a,
                      int64_t b) {
  if (a == b)
    return true;
  if (areGuardedDistinct(kernel.getGuardsAttr(), a, b))
    return false;
  return isAliasPair(aliases, a, b);
}

static bool isBatchable(Operation *op) {
  if (op->getNumRegions() != 0)
    return false;
  if (isTileOp(op) ||
      isa<LoadOp, StoreOp, PresentOp, SameTensorOp, memref::DimOp>(op))
    return true;
  // Integer divisions are not batched: a vector division divides for all rows
  // of a batch, but the select that excludes a zero divisor only tests the
  // divisor of one row.
  return isElementwiseScalar(op) &&
         !isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(
             op);
}

/// Returns true if `early` accesses memory so often that the program of a batch
/// is long. The program has each of these accesses once for every row of the
/// batch.
static bool isLongBatch(const RowInvariantScalars &early,
                        const MachineModel &machine) {
  return llvm::count_if(early.inOrder(), [](Operation *op) {
           return getSingleAccess(op).has_value();
         }) > machine.batchAccesses;
}

bool mlafix::canBatchScalars(KernelOp kernel, ArrayAttr aliases,
                             StringRef &reason) {
  auto refuse = [&](StringRef why) {
    reason = why;
    return false;
  };
  auto forall = dyn_cast_or_null<ForallOp>(kernel.getGrid());
  if (!forall || forall.getExtents().empty())
    return refuse("the grid is not a dense one of at least one extent");
  Block &row = forall.getBody().front();
  if (!llvm::all_of(row.without_terminator(),
                    [](Operation &op) { return isBatchable(&op); }))
    return refuse("a row branches, loops or divides integers");
  RowInvariantScalars early(row);
  if (llvm::none_of(early.inOrder(), isLong))
    return refuse("no scalar takes a division, a root, a logarithm or an "
                  "exponential");
  if (isLongBatch(early, getMachine(kernel)))
    return refuse("a row loads and stores so many scalars that the code of a "
                  "batch would take long to compile");
  if (llvm::any_of(early.kept(), [](Value value) {
        return !isa<FloatType, IntegerType>(value.getType());
      }))
    return refuse("an index would have to be kept for each row");
  // No row may read data that the scalar stores of another row have already
  // written.
  for (Operation *op : early.inOrder()) {
    std::optional<MemoryAccess> mine = getSingleAccess(op);
    if (!mine)
      continue;
    for (Operation &other : row.without_terminator()) {
      std::optional<MemoryAccess> theirs = getSingleAccess(&other);
      if (!theirs || (!mine->isWrite && !theirs->isWrite) ||
          !mayBeSame(kernel, aliases, mine->getArgNumber(),
                     theirs->getArgNumber()))
        continue;
      bool bothEarlyWrites =
          mine->isWrite && theirs->isWrite && early.contains(&other);
      if (!bothEarlyWrites)
        return refuse("a row may read what the scalars of another one wrote");
    }
  }
  return true;
}
