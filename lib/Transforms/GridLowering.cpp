//===- GridLowering.cpp - helpers to replace the grid of a kernel ---------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GridLowering.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlafix;

LogicalResult mlafix::verifyPlanned(KernelOp kernel) {
  if (getTarget(kernel).empty() || !kernel.getPlanAttr())
    return kernel.emitError() << "expected a kernel with a plan, got one that "
                                 "mlafix-plan-kernel has not seen";
  // No state may be left: mlafix-lower-states replaces each by three values.
  auto isState = llvm::IsaPred<StateType>;
  WalkResult walk = kernel.getBody().walk([&](Operation *op) -> WalkResult {
    if (llvm::none_of(op->getOperandTypes(), isState) &&
        llvm::none_of(op->getResultTypes(), isState))
      return WalkResult::advance();
    return op->emitError() << "expected rows and scalars, got a state, which "
                              "mlafix-lower-states has not seen";
  });
  return failure(walk.wasInterrupted());
}

void mlafix::inlineRow(OpBuilder &b, Block &row, ValueRange indices) {
  for (auto [argument, index] : llvm::zip(row.getArguments(), indices))
    argument.replaceAllUsesWith(index);
  Operation *point = &*b.getInsertionPoint();
  for (Operation &op : llvm::make_early_inc_range(row.without_terminator()))
    op.moveBefore(point);
}

void mlafix::buildLoop(OpBuilder &b, Location loc, Value first, Value extent,
                       Value step, function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(b, loc, first, extent, step);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(loop.getBody()->getTerminator());
  body(loop.getInductionVar());
}

Value mlafix::loadBoundary(OpBuilder &b, RaggedForallOp grid, Value segment) {
  Location loc = grid.getLoc();
  Value value = memref::LoadOp::create(b, loc, grid.getCuSeqlens(), segment);
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
}

// As an unsigned number, a negative boundary exceeds every number of rows, so
// the unsigned comparisons reject it.
Value mlafix::selectWellFormed(OpBuilder &b, RaggedForallOp grid,
                               Value selected, Value start, Value end) {
  IndexBuilder x(b, grid.getLoc());
  selected = x.band(selected, x.compare(arith::CmpIPredicate::ule, start, end));
  return x.band(selected,
                x.compare(arith::CmpIPredicate::ule, end, grid.getRows()));
}

//===----------------------------------------------------------------------===//
// Arguments of the launch
//===----------------------------------------------------------------------===//

/// The verifier guarantees that `extent` has one of the forms below: a
/// constant, a size of a tensor, or a scalar argument.
ExtentAttr mlafix::describeExtent(Value extent) {
  MLIRContext *context = extent.getContext();
  APInt value;
  if (matchPattern(extent, m_ConstantInt(&value)))
    return ExtentAttr::ofConstant(context, value.getSExtValue());
  if (auto dim = extent.getDefiningOp<memref::DimOp>())
    return ExtentAttr::get(context,
                           getKernelArgument(dim.getSource()).getArgNumber(),
                           *dim.getConstantIndex());
  if (auto cast = extent.getDefiningOp<arith::IndexCastOp>())
    extent = cast.getIn();
  return ExtentAttr::ofScalar(context,
                              getKernelArgument(extent).getArgNumber());
}

SmallVector<ExtentAttr> mlafix::describeExtents(ValueRange extents) {
  return llvm::map_to_vector(extents, describeExtent);
}

Value mlafix::addArgument(KernelOp kernel, StringRef name, Type type) {
  SmallVector<Attribute> names(kernel.getArgNames().getValue());
  unsigned position = kernel.getNumArguments();
  (void)kernel.insertArgument(position, type, {}, kernel.getLoc());
  names.push_back(StringAttr::get(kernel.getContext(), name));
  kernel.setArgNamesAttr(ArrayAttr::get(kernel.getContext(), names));
  return kernel.getArgument(position);
}
