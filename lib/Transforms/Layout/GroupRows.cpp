//===- GroupRows.cpp - rows of one element per group ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/MemoryAccess.h"
#include "lib/Transforms/Layout/LongRows.h"
#include "lib/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

namespace mlafix {
#define GEN_PASS_DEF_GROUPROWSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

namespace {
/// Marks rows that have one element per group: changes their dim G to that of
/// one element for each group of (G K). Starts at rows that are broadcast over
/// groups or result from reducing groups, and follows definitions and uses.
class GroupTypes {
public:
  LogicalResult run(KernelOp kernel);

private:
  LogicalResult mark(Value row, DimAttr dim);
  LogicalResult markOperand(OpOperand &operand, DimAttr dim);
  LogicalResult markAll(Operation *op, DimAttr dim);
  LogicalResult markCarried(scf::ForOp loop, unsigned number, DimAttr dim);
  LogicalResult markBefore(scf::WhileOp loop, unsigned number, DimAttr dim);
  LogicalResult markAfter(scf::WhileOp loop, unsigned number, DimAttr dim);
  LogicalResult markYielded(scf::IfOp branch, unsigned number, DimAttr dim);
  LogicalResult markMerged(MergeLoopOp loop, unsigned number, DimAttr dim);
  LogicalResult followDefinition(Value row);
  LogicalResult followUse(OpOperand &use);
  LogicalResult followAll();
  LogicalResult markSpread(Operation *op, DimAttr product);

  SmallVector<Value> open; // marked rows whose uses have not been followed yet
};
} // namespace

static Type withDim(Type row, DimAttr dim) {
  return getRowTileType(dim, getElementTypeOrSelf(row));
}

LogicalResult GroupTypes::mark(Value row, DimAttr dim) {
  if (!isRowTile(row.getType()))
    return success();
  DimAttr known = getTileDim(row.getType());
  if (known == dim)
    return success();
  if (known != dim.getGroups())
    return emitError(row.getLoc())
           << "expected groups of one size for this row, got "
           << known.getGroup().str() << " and " << dim.getGroup().str();
  row.setType(withDim(row.getType(), dim));
  open.push_back(row);
  return success();
}

/// Marks an operand. If a splat, a constant or an iota defines it, other ops
/// may use the same value along another dim. So the defining op is cloned for
/// this operand, and only the clone is marked.
LogicalResult GroupTypes::markOperand(OpOperand &operand, DimAttr dim) {
  Value row = operand.get();
  Operation *def = row.getDefiningOp();
  if (!isRowTile(row.getType()) || !def ||
      !(isUniform(def) || isa<IotaOp>(def)))
    return mark(row, dim);
  if (getTileDim(row.getType()) == dim)
    return success();
  OpBuilder b(def);
  Type type = withDim(row.getType(), dim);
  Operation *clone = b.clone(*def);
  clone->getResult(0).setType(type);
  if (auto constant = dyn_cast<arith::ConstantOp>(clone))
    if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
      constant.setValueAttr(DenseElementsAttr::get(
          cast<ShapedType>(type), splat.getSplatValue<Attribute>()));
  operand.set(clone->getResult(0));
  return success();
}

/// Returns true if all row operands and results of `op` have the same dim.
static bool keepsDim(Operation *op) {
  return isa<ScanOp>(op) || OpTrait::hasElementwiseMappableTraits(op);
}

/// Marks all rows of `op`.
LogicalResult GroupTypes::markAll(Operation *op, DimAttr dim) {
  for (OpOperand &operand : op->getOpOperands())
    if (failed(markOperand(operand, dim)))
      return failure();
  for (Value result : op->getResults())
    if (failed(mark(result, dim)))
      return failure();
  return success();
}

LogicalResult GroupTypes::markCarried(scf::ForOp loop, unsigned number,
                                      DimAttr dim) {
  return failure(
      failed(markOperand(loop.getInitArgsMutable()[number], dim)) ||
      failed(mark(loop.getRegionIterArg(number), dim)) ||
      failed(markOperand(loop.getBody()->getTerminator()->getOpOperand(number),
                         dim)) ||
      failed(mark(loop.getResult(number), dim)));
}

LogicalResult GroupTypes::markBefore(scf::WhileOp loop, unsigned number,
                                     DimAttr dim) {
  return failure(
      failed(markOperand(loop.getInitsMutable()[number], dim)) ||
      failed(mark(loop.getBeforeArguments()[number], dim)) ||
      failed(markOperand(loop.getYieldOp()->getOpOperand(number), dim)));
}

LogicalResult GroupTypes::markAfter(scf::WhileOp loop, unsigned number,
                                    DimAttr dim) {
  return failure(failed(markOperand(
                     loop.getConditionOp().getArgsMutable()[number], dim)) ||
                 failed(mark(loop.getAfterArguments()[number], dim)) ||
                 failed(mark(loop.getResult(number), dim)));
}

LogicalResult GroupTypes::markYielded(scf::IfOp branch, unsigned number,
                                      DimAttr dim) {
  for (Region *region : branch.getRegions())
    if (failed(markOperand(
            region->front().getTerminator()->getOpOperand(number), dim)))
      return failure();
  return mark(branch.getResult(number), dim);
}

LogicalResult GroupTypes::markMerged(MergeLoopOp loop, unsigned number,
                                     DimAttr dim) {
  Operation *yield = loop.getBody().front().getTerminator();
  return failure(failed(markOperand(loop.getInitMutable()[number], dim)) ||
                 failed(markOperand(yield->getOpOperand(number), dim)) ||
                 failed(mark(loop.getResult(number), dim)));
}

LogicalResult GroupTypes::followDefinition(Value row) {
  DimAttr dim = getTileDim(row.getType());
  if (auto argument = dyn_cast<BlockArgument>(row)) {
    unsigned number = argument.getArgNumber();
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      return markCarried(loop, number - 1, dim);
    auto loop = cast<scf::WhileOp>(parent);
    return argument.getOwner() == loop.getBeforeBody()
               ? markBefore(loop, number, dim)
               : markAfter(loop, number, dim);
  }
  Operation *op = row.getDefiningOp();
  unsigned number = cast<OpResult>(row).getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return markCarried(loop, number, dim);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return markAfter(loop, number, dim);
  if (auto loop = dyn_cast<MergeLoopOp>(op))
    return markMerged(loop, number, dim);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return markYielded(branch, number, dim);
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return mark(row, getTileDim(reduce.getSource().getType()).getEachGroup());
  return keepsDim(op) ? markAll(op, dim) : success();
}

LogicalResult GroupTypes::followUse(OpOperand &use) {
  Operation *op = use.getOwner();
  Value row = use.get();
  DimAttr dim = getTileDim(row.getType());
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return mark(row, getTileDim(broadcast.getType()).getEachGroup());
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return markCarried(loop, loop.getTiedLoopResult(&use).getResultNumber(),
                       dim);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return markBefore(loop, use.getOperandNumber(), dim);
  if (auto loop = dyn_cast<MergeLoopOp>(op))
    return markMerged(
        loop, use.getOperandNumber() - loop.getInit().getBeginOperandIndex(),
        dim);
  if (auto yield = dyn_cast<YieldOp>(op))
    return markMerged(cast<MergeLoopOp>(yield->getParentOp()),
                      use.getOperandNumber(), dim);
  if (auto condition = dyn_cast<scf::ConditionOp>(op))
    return markAfter(cast<scf::WhileOp>(op->getParentOp()),
                     use.getOperandNumber() - 1, dim);
  if (isa<SwapOp>(op))
    return op->emitError() << "swap: expected a row that no operation combines "
                              "with a row along a product, got one along "
                           << dim.getGroups().str()
                           << " combined with groups of "
                           << dim.getGroup().str();
  if (isa<scf::YieldOp>(op)) {
    unsigned number = use.getOperandNumber();
    Operation *parent = op->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      return markCarried(loop, number, dim);
    if (auto loop = dyn_cast<scf::WhileOp>(parent))
      return markBefore(loop, number, dim);
    return markYielded(cast<scf::IfOp>(parent), number, dim);
  }
  return keepsDim(op) ? markAll(op, dim) : success();
}

/// If `op` accesses a row along the groups of a product, and the elements of
/// this row are not adjacent in memory, returns the product. Returns null for
/// other accesses.
static DimAttr getSpreadProduct(KernelOp kernel, Operation *op) {
  std::optional<MemoryAccess> access = getSingleAccess(op);
  if (!access || !access->isRow || access->isPerGroup() ||
      !access->getArgument())
    return DimAttr();
  auto type = cast<MemRefType>(access->memref.getType());
  return type.getStridesAndOffset().first.back() == 1 &&
                 !isSwizzled(access->memref)
             ? DimAttr()
             : getProductOf(kernel, access->getRowDim());
}

LogicalResult GroupTypes::markSpread(Operation *op, DimAttr product) {
  auto store = dyn_cast<StoreOp>(op);
  return store ? markOperand(store.getValueMutable(), product.getEachGroup())
               : mark(op->getResult(0), product.getEachGroup());
}

LogicalResult GroupTypes::followAll() {
  while (!open.empty()) {
    Value row = open.pop_back_val();
    if (failed(followDefinition(row)))
      return failure();
    for (OpOperand &use : llvm::make_early_inc_range(row.getUses()))
      if (failed(followUse(use)))
        return failure();
  }
  return success();
}

LogicalResult GroupTypes::run(KernelOp kernel) {
  WalkResult walk = kernel.walk([&](Operation *op) {
    LogicalResult result = success();
    if (auto broadcast = dyn_cast<BroadcastOp>(op))
      result = markOperand(broadcast.getSourceMutable(),
                           getTileDim(broadcast.getType()).getEachGroup());
    auto reduce = dyn_cast<ReduceOp>(op);
    if (reduce && isRowTile(reduce.getType()))
      result = mark(reduce.getResult(),
                    getTileDim(reduce.getSource().getType()).getEachGroup());
    return failed(result) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (walk.wasInterrupted() || failed(followAll()))
    return failure();
  // Rows along groups that no op broadcasts over groups or reduces from groups
  // are also marked if their elements are not adjacent in memory.
  walk = kernel.walk([&](Operation *op) {
    DimAttr product = getSpreadProduct(kernel, op);
    return product && (failed(markSpread(op, product)) || failed(followAll()))
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

namespace {
class GroupRowsPass : public mlafix::impl::GroupRowsPassBase<GroupRowsPass> {
public:
  void runOnOperation() override {
    if (failed(GroupTypes().run(getOperation())))
      signalPassFailure();
  }
};
} // namespace
