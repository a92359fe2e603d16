//===- PrefetchRows.cpp - rows that come out of memory --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Guards.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/LongRows.h"
#include "lib/Transforms/Passes.h"
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
/// A row of a batch (mlafix-batch-rows): the one that is `lane` rows after row
/// number `row` along the outermost of `extents` (null, since a number says
/// enough without it).
struct BatchRow {
  Value row, lane;
  SmallVector<Value> extents;
};
} // namespace

/// The row of a batch that `load` reads in `loop`, an iteration of which moves
/// one; none where its indices are others.
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
    if (isGPU(getTarget(getOperation())))
      return;
    getOperation().walk([&](scf::ForOp loop) { prefetch(loop); });
  }

private:
  void prefetch(scf::ForOp loop);
  void prefetchLines(OpBuilder &b, LoadOp load, ArrayRef<Value> indices);
  int64_t rowBytes(LoadOp load) {
    return elementBytes(load) * getTileDim(load.getType()).getSize();
  }
  int64_t elementBytes(LoadOp load) {
    return getDTypeBytes(
        cast<MemRefType>(load.getSource().getType()).getElementType());
  }
};
} // namespace

/// Of the row at `indices`, the lines that are not too far ahead.
void PrefetchRowsPass::prefetchLines(OpBuilder &b, LoadOp load,
                                     ArrayRef<Value> indices) {
  Location loc = load.getLoc();
  MachineModel machine = getMachine(getOperation());
  for (int64_t at = 0, end = std::min(rowBytes(load), machine.aheadBytes);
       at < end; at += machine.lineBytes) {
    SmallVector<Value> element(indices);
    element.push_back(IndexBuilder(b, loc).constant(at / elementBytes(load)));
    memref::PrefetchOp::create(b, loc, load.getSource(), element,
                               /*isWrite=*/false, /*localityHint=*/3,
                               /*isDataCache=*/true);
  }
}

/// Ahead of the row that `loop` moves, prefetches those that follow in the
/// tensors that no cache holds. Whether they will be read is what is known of
/// this one.
void PrefetchRowsPass::prefetch(scf::ForOp loop) {
  auto first = llvm::find_if(*loop.getBody(),
                             [](Operation &op) { return isTileOp(&op); });
  if (first == loop.getBody()->end())
    return;
  OpBuilder b(&*first);
  int64_t bytes = getMachine(getOperation()).aheadBytes;
  llvm::SmallDenseMap<int64_t, SmallVector<Value>> indicesAhead;
  for (LoadOp load : loop.getBody()->getOps<LoadOp>()) {
    BlockArgument argument = getKernelArgument(load.getSource());
    Value predicate = load.getPredicate();
    Operation *decides = predicate ? predicate.getDefiningOp() : nullptr;
    bool isKnown =
        !predicate || (decides && decides->getBlock() == loop.getBody() &&
                       decides->isBeforeInBlock(&*first));
    if (!isRowTile(load.getType()) || !argument || !isKnown ||
        !isGuardedBeyondCache(getOperation().getGuardsAttr(),
                              argument.getArgNumber()))
      continue;
    std::optional<BatchRow> place = getBatchRow(loop, load);
    if (!place)
      continue;
    Location loc = load.getLoc();
    IndexBuilder x(b, loc);
    int64_t ahead = std::max<int64_t>(1, bytes / rowBytes(load));
    LDBG() << getOperation().getSymName() << ": prefetches rows of "
           << getOperation().getArgName(argument.getArgNumber()) << ", "
           << ahead << " ahead";
    SmallVector<Value> &indices = indicesAhead[ahead];
    if (indices.empty()) {
      indices =
          x.delinearize(x.add(place->row, x.constant(ahead)), place->extents);
      indices.front() = x.add(indices.front(), place->lane);
    }
    OpBuilder::InsertionGuard guard(b);
    if (predicate)
      b.setInsertionPoint(scf::IfOp::create(b, loc, predicate).thenYield());
    prefetchLines(b, load, indices);
  }
}
