//===- PlanRows.cpp - plans the rows of a CPU -----------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Plan/PlanRows.h"
#include "dialect/Guards.h"
#include "lib/Analysis/Aliasing.h"
#include "lib/Plan/RowLoops.h"
#include "lib/Transforms/Layout/LongRows.h"
#include "lib/Transforms/Layout/RowInvariantScalars.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlafix;

static bool isElementwiseScalar(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1;
}

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

bool mlafix::canBatchScalars(KernelOp kernel, const MachineModel &machine,
                             ArrayAttr aliases, StringRef &reason) {
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
  if (llvm::none_of(early.inOrder(), isLongScalar))
    return refuse("no scalar takes a division, a root, a logarithm or an "
                  "exponential");
  if (isLongBatch(early, machine))
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

/// Returns the number of indices of the inner extents of `forall`. Returns
/// nullopt if it is not known.
static std::optional<int64_t> countInnerIndices(ForallOp forall) {
  int64_t indices = 1;
  for (Value extent : forall.getExtents().drop_front()) {
    std::optional<int64_t> value = getConstantIntValue(extent);
    if (!value || *value < 1 || *value > INT32_MAX / indices)
      return std::nullopt;
    indices *= *value;
  }
  return indices;
}

/// Returns the number of indices of the inner extents for which a batch
/// computes scalars. The buffers for them must fit into `batchBytes`.
static int64_t chooseStripRows(KernelOp version, const MachineModel &machine) {
  auto forall = cast<ForallOp>(version.getGrid());
  int64_t strip = std::min(machine.stripRows,
                           countInnerIndices(forall).value_or(INT32_MAX));
  RowInvariantScalars early(forall.getBody().front());
  int64_t bytes = 0;
  for (Value value : early.kept())
    bytes += getDTypeBytes(value.getType());
  bytes *= version.getLayoutAttr().getRows();
  while (strip > 1 && bytes * strip > machine.batchBytes)
    strip /= 2;
  return strip;
}

/// Returns true if `version` is for calls whose tensors exceed the caches.
static bool isBeyondCache(KernelOp version) {
  return llvm::any_of(version.getGuardsAttr().getAsRange<GuardAttr>(),
                      [](GuardAttr guard) {
                        return guard.getKind() == GuardKind::BeyondCache;
                      });
}

PlanAttr mlafix::planRows(KernelOp version, const MachineModel &machine) {
  PlanAttr plan = version.getPlanAttr();
  if (chooseRowLoops(version, machine))
    plan = plan.with(PlanField::RowLoops, true)
               .with(PlanField::KeptElements, machine.keptElements);
  if (plan.getLayout().getRows() > 1)
    plan = plan.with(PlanField::StripRows, chooseStripRows(version, machine));
  if (isBeyondCache(version))
    plan = plan.with(PlanField::AheadBytes, machine.aheadBytes);
  return plan;
}
