//===- PrefetchRows.cpp - prefetch rows on CPUs ---------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Guards.h"
#include "dialect/Plan.h"
#include "lib/Transforms/GridLowering.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/Layout/LongRows.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Remarks.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-prefetch-rows"

namespace mlafix {
#define GEN_PASS_DEF_PREFETCHROWSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

namespace {
/// A row of a batch (mlafix-lower-grid). It has the indices of row number `row`
/// of a grid with the extents `extents`, except that the outermost index is
/// larger by `lane`.
struct BatchRow {
  Value row, lane;
  SmallVector<Value> extents;
};
} // namespace

/// Returns the row of a batch that `load` reads in an iteration of `loop`.
/// Returns nullopt if the indices have another form.
static std::optional<BatchRow> getBatchRow(scf::ForOp loop, LoadOp load) {
  if (load.getIndices().empty())
    return std::nullopt;
  auto outer = load.getIndices().front().getDefiningOp<arith::AddIOp>();
  if (!outer)
    return std::nullopt;
  BatchRow place = {outer.getLhs(), outer.getRhs(), {Value()}};
  for (Value index : load.getIndices().drop_front()) {
    auto quotient = place.row.getDefiningOp<arith::DivUIOp>();
    auto rest = index.getDefiningOp<arith::RemUIOp>();
    if (!quotient || !rest || quotient->getOperands() != rest->getOperands())
      return std::nullopt;
    place.row = quotient.getLhs();
    place.extents.push_back(quotient.getRhs());
  }
  auto number = place.row.getDefiningOp<arith::AddIOp>();
  bool isCounted = number && llvm::is_contained(number->getOperands(),
                                                loop.getInductionVar());
  return isCounted ? std::optional(place) : std::nullopt;
}

namespace {
class PrefetchRowsPass
    : public mlafix::impl::PrefetchRowsPassBase<PrefetchRowsPass> {
public:
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    if (failed(verifyPlanned(kernel)))
      return signalPassFailure();
    aheadBytes = getPlanned(kernel, PlanField::AheadBytes);
    if (aheadBytes == 0)
      return;
    kernel.walk([&](scf::ForOp loop) { prefetch(loop); });
  }

private:
  void prefetch(scf::ForOp loop);
  std::optional<BatchRow> chooseRow(scf::ForOp loop, LoadOp load,
                                    Operation *first);
  void prefetchLines(OpBuilder &b, LoadOp load, ArrayRef<Value> indices);

  int64_t aheadBytes = 0; ///< `ahead_bytes` of the plan

  int64_t rowBytes(LoadOp load) {
    return getRowBytes(load.getType(), getElementTypeOrSelf(load.getSource()));
  }
  int64_t elementBits(LoadOp load) {
    return getDTypeBits(
        cast<MemRefType>(load.getSource().getType()).getElementType());
  }
};
} // namespace

/// Prefetches the first `aheadBytes` of the row at `indices`.
void PrefetchRowsPass::prefetchLines(OpBuilder &b, LoadOp load,
                                     ArrayRef<Value> indices) {
  Location loc = load.getLoc();
  int64_t line = getMachine(getOperation()).lineBytes;
  for (int64_t at = 0, end = std::min(rowBytes(load), aheadBytes); at < end;
       at += line) {
    SmallVector<Value> element(indices);
    element.push_back(IndexBuilder(b, loc).constant(
        load.getBegin().value_or(0) + 8 * at / elementBits(load)));
    memref::PrefetchOp::create(b, loc, load.getSource(), element,
                               /*isWrite=*/false, /*localityHint=*/3,
                               /*isDataCache=*/true);
  }
}

/// Returns the row that `load` reads in `loop` if it belongs to a batch and its
/// tensor exceeds the caches. Returns nullopt otherwise, also if the predicate
/// of the load is not available before `first`, the first op on rows.
std::optional<BatchRow>
PrefetchRowsPass::chooseRow(scf::ForOp loop, LoadOp load, Operation *first) {
  KernelOp kernel = getOperation();
  BlockArgument argument = getKernelArgument(load.getSource());
  if (!isRowTile(load.getType()) || !argument ||
      !isGuardedBeyondCache(kernel.getGuardsAttr(), argument.getArgNumber()))
    return std::nullopt;
  auto refuse = [&](StringRef why) {
    remark::missed(load.getLoc(),
                   nameRemark("prefetch-rows", DEBUG_TYPE, kernel))
        << remark::add("rows of {0} are not prefetched: {1}",
                       kernel.getArgName(argument.getArgNumber()), why);
    return std::nullopt;
  };
  if (load.getGroup() || load.getMember())
    return refuse("they are read in parts");
  Value predicate = load.getPredicate();
  Operation *decides = predicate ? predicate.getDefiningOp() : nullptr;
  bool isKnown =
      !predicate || (decides && decides->getBlock() == loop.getBody() &&
                     decides->isBeforeInBlock(first));
  if (!isKnown)
    return refuse("the condition of their reads depends on other reads");
  std::optional<BatchRow> row = getBatchRow(loop, load);
  // A kernel with batches also has a loop for the rows outside complete
  // batches. No remark is made about loads in that loop.
  if (!row && kernel.getLayoutAttr().getRows() == 1)
    return refuse("the kernel does one row after the other, not batches");
  return row;
}

/// Prefetches rows that later iterations of `loop` read, from tensors that
/// exceed the caches. Assumes that a later row is read if the current row is.
void PrefetchRowsPass::prefetch(scf::ForOp loop) {
  auto first = llvm::find_if(*loop.getBody(),
                             [](Operation &op) { return isTileOp(&op); });
  if (first == loop.getBody()->end())
    return;
  KernelOp kernel = getOperation();
  OpBuilder b(&*first);
  llvm::SmallDenseMap<int64_t, SmallVector<Value>> indicesAhead;
  for (LoadOp load : loop.getBody()->getOps<LoadOp>()) {
    std::optional<BatchRow> row = chooseRow(loop, load, &*first);
    if (!row)
      continue;
    Location loc = load.getLoc();
    IndexBuilder x(b, loc);
    int64_t ahead = std::max<int64_t>(1, aheadBytes / rowBytes(load));
    StringRef name =
        kernel.getArgName(getKernelArgument(load.getSource()).getArgNumber());
    LDBG() << kernel.getSymName() << ": prefetches rows of " << name << ", "
           << ahead << " ahead";
    remark::passed(loc, nameRemark("prefetch-rows", DEBUG_TYPE, kernel))
        << remark::add("rows of {0} are prefetched {1} ahead, {2} bytes of each"
                       ": the CPU's own prefetches end with a page",
                       name, ahead, std::min(rowBytes(load), aheadBytes));
    SmallVector<Value> &indices = indicesAhead[ahead];
    if (indices.empty()) {
      indices = x.delinearize(x.add(row->row, x.constant(ahead)), row->extents);
      indices.front() = x.add(indices.front(), row->lane);
    }
    OpBuilder::InsertionGuard guard(b);
    if (Value predicate = load.getPredicate())
      b.setInsertionPoint(scf::IfOp::create(b, loc, predicate).thenYield());
    prefetchLines(b, load, indices);
  }
}
