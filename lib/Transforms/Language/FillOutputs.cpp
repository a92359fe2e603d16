//===- FillOutputs.cpp - fill elements that no store writes ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Each branch around stores to an output yields a boolean, which is true if the
// row of the grid has stored to the output. If the row has not, an additional
// store at the end of the grid's body writes the fill.
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

#include <limits>

namespace mlafix {
#define GEN_PASS_DEF_FILLOUTPUTSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

namespace {
class FillOutputsPass
    : public mlafix::impl::FillOutputsPassBase<FillOutputsPass> {
public:
  void runOnOperation() override {
    for (unsigned i = 0; i < getOperation().getNumArguments(); ++i)
      if (getOperation().getArgAttr(i, kFillAttr) && failed(fill(i)))
        return signalPassFailure();
  }

private:
  LogicalResult fill(unsigned argument);
};

/// The stores to one output.
class Output {
public:
  Output(KernelOp kernel, unsigned argument)
      : kernel(kernel), memref(kernel.getArgument(argument)),
        name(kernel.getArgName(argument)) {
    for (const MemoryAccess &access : collectAccesses(kernel))
      if (access.memref == memref && access.isWrite)
        stores.push_back(access);
  }

  /// Checks that each row of the grid can decide by itself if it writes the
  /// fill. A row must store at most one element or row of the output, and
  /// distinct rows must store distinct ones. Every element or row of the output
  /// must belong to a row of the grid.
  LogicalResult verify();
  /// Builds an i1 that is true if the row of the grid has stored to the output
  /// in `block`. Returns null if `block` contains no such store.
  FailureOr<Value> buildWritten(Block &block);
  /// Builds the fill as a value that `mlafix.store` accepts: a scalar or a row.
  Value buildFill(OpBuilder &b, Attribute fill);

  ArrayRef<MemoryAccess> getStores() const { return stores; }

private:
  FailureOr<Value> buildWritten(scf::IfOp branch);
  bool isRowOf(const MemoryAccess &store, ForallOp grid) const;
  bool holdsStore(Operation *op) const {
    return llvm::any_of(stores, [&](const MemoryAccess &store) {
      return op->isAncestor(store.op);
    });
  }
  InFlightDiagnostic fail(Operation *op) const {
    return op->emitError() << "fill of '" << name
                           << "': expected a grid with one row for each row "
                              "that is stored, got ";
  }

  KernelOp kernel;
  Value memref;
  StringRef name;
  SmallVector<MemoryAccess> stores;
};
} // namespace

/// Returns true if the grid's index runs over exactly the dim `dim` of
/// `memref`.
static bool runsOver(ForallOp grid, BlockArgument index, Value memref,
                     unsigned dim) {
  Value extent = grid.getExtents()[index.getArgNumber()];
  DimAttr size = getArgumentDim(memref, dim);
  APInt number;
  if (matchPattern(extent, m_ConstantInt(&number)))
    return size && size.isBound() && number == size.getSize();
  auto of = extent.getDefiningOp<memref::DimOp>();
  if (!of || !of.getConstantIndex())
    return false;
  return (of.getSource() == memref && *of.getConstantIndex() == dim) ||
         (size &&
          getArgumentDim(of.getSource(), *of.getConstantIndex()) == size);
}

bool Output::isRowOf(const MemoryAccess &store, ForallOp grid) const {
  llvm::SmallPtrSet<Value, 4> used;
  for (auto [dim, index] : llvm::enumerate(store.indices)) {
    auto argument = dyn_cast<BlockArgument>(index);
    bool isIndex = argument && argument.getOwner()->getParentOp() == grid;
    if (!isIndex || !used.insert(index).second ||
        !runsOver(grid, argument, memref, dim))
      return false;
  }
  for (auto [index, extent] :
       llvm::zip(grid.getBody().getArguments(), grid.getExtents()))
    if (!used.contains(index) && !matchPattern(extent, m_One()))
      return false;
  return true;
}

LogicalResult Output::verify() {
  if (!kernel.getGrid())
    return fail(kernel) << "no grid";
  auto grid = dyn_cast<ForallOp>(kernel.getGrid());
  if (!grid)
    return fail(kernel.getGrid())
           << "a ragged grid, whose segments may leave rows out; declare '"
           << name << "' with access \"update\" (InOut), and fill it before";
  if (stores.empty())
    return fail(kernel) << "no store";
  for (const MemoryAccess &store : stores) {
    if (store.isPart() || store.slice)
      return fail(store.op) << "a store of a part of a row";
    if (!isRowOf(store, grid) || store.isRow != stores.front().isRow ||
        !llvm::equal(store.indices, stores.front().indices))
      return fail(store.op) << (store.op == stores.front().op
                                    ? "a store at other indices than the grid's"
                                    : "stores at several indices");
  }
  return success();
}

FailureOr<Value> Output::buildWritten(scf::IfOp branch) {
  OpBuilder b(branch);
  Location loc = branch.getLoc();
  SmallVector<Type> types(branch.getResultTypes());
  types.push_back(b.getI1Type());
  auto wider = scf::IfOp::create(b, loc, types, branch.getCondition(),
                                 /*addThenBlock=*/true, /*addElseBlock=*/true);
  wider.getThenRegion().takeBody(branch.getThenRegion());
  if (!branch.getElseRegion().empty())
    wider.getElseRegion().takeBody(branch.getElseRegion());
  if (wider.elseBlock()->empty()) {
    OpBuilder atEnd = OpBuilder::atBlockEnd(wider.elseBlock());
    scf::YieldOp::create(atEnd, loc);
  }
  for (Block *block : {wider.thenBlock(), wider.elseBlock()}) {
    FailureOr<Value> written = buildWritten(*block);
    if (failed(written))
      return failure();
    Operation *yield = block->getTerminator();
    b.setInsertionPoint(yield);
    if (!*written)
      *written = arith::ConstantIntOp::create(b, loc, false, 1);
    yield->insertOperands(yield->getNumOperands(), *written);
  }
  branch.replaceAllUsesWith(wider.getResults().drop_back());
  branch.erase();
  return Value(wider.getResults().back());
}

FailureOr<Value> Output::buildWritten(Block &block) {
  Value written;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (!holdsStore(&op))
      continue;
    Location loc = op.getLoc();
    Value here;
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      FailureOr<Value> inside = buildWritten(branch);
      if (failed(inside))
        return failure();
      here = *inside;
    } else if (op.getNumRegions()) {
      return fail(&op) << "a store in a loop";
    }
    OpBuilder b(block.getParentOp());
    b.setInsertionPointAfter(here ? here.getDefiningOp() : &op);
    for (const MemoryAccess &store : stores)
      if (!here && store.op == &op)
        here = store.predicate
                   ? store.predicate
                   : Value(arith::ConstantIntOp::create(b, loc, true, 1));
    written =
        written ? Value(arith::OrIOp::create(b, loc, written, here)) : here;
  }
  return written;
}

Value Output::buildFill(OpBuilder &b, Attribute fill) {
  Location loc = kernel.getLoc();
  auto type = cast<MemRefType>(memref.getType());
  Type element = getComputeType(type.getElementType());
  TypedAttr number = dyn_cast<FloatAttr>(fill);
  auto integer = dyn_cast<IntegerAttr>(fill);
  if (integer && isa<FloatType>(element))
    // The verifier has checked that the integer is 0.
    number = b.getF32FloatAttr(0.0f);
  else if (integer)
    number = b.getIntegerAttr(element, integer.getValue().sextOrTrunc(
                                           element.getIntOrFloatBitWidth()));
  else if (isa<StringAttr>(fill) && !isa<FloatType>(element))
    number = b.getIntegerAttr(element, 0);
  else if (isa<StringAttr>(fill)) {
    bool isLse = llvm::any_of(memref.getUsers(), [&](Operation *user) {
      auto load = dyn_cast<LoadStateOp>(user);
      auto store = dyn_cast<StoreStateOp>(user);
      return (load && load.getLse() == memref) ||
             (store && store.getLse() == memref);
    });
    number = b.getF32FloatAttr(isLse ? -std::numeric_limits<float>::infinity()
                                     : 0.0f);
  }
  Value value = arith::ConstantOp::create(b, loc, number);
  if (!stores.front().isRow)
    return value;
  return SplatOp::create(b, loc, getRowTileType(getLastDim(memref), element),
                         value);
}

LogicalResult FillOutputsPass::fill(unsigned argument) {
  KernelOp kernel = getOperation();
  Attribute fill = kernel.removeArgAttr(argument, kFillAttr);
  if (kernel.isArgAbsent(argument))
    return success();
  Output output(kernel, argument);
  if (failed(output.verify()))
    return failure();
  Block &row = cast<ForallOp>(kernel.getGrid()).getBody().front();
  SmallVector<Value> indices(output.getStores().front().indices);
  FailureOr<Value> written = output.buildWritten(row);
  if (failed(written))
    return failure();
  OpBuilder b(row.getTerminator());
  Location loc = kernel.getLoc();
  Value yes = arith::ConstantIntOp::create(b, loc, true, 1);
  Value isLeft = arith::XOrIOp::create(b, loc, *written, yes);
  StoreOp::create(b, loc, output.buildFill(b, fill),
                  kernel.getArgument(argument), indices, isLeft);
  return success();
}
