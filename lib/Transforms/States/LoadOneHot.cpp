//===- LoadOneHot.cpp - replace a reduction of one element by its load ----===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Aliasing.h"
#include "lib/Transforms/AccessPredicate.h"
#include "lib/Transforms/IndexBuilder.h"
#include "lib/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-load-one-hot"

namespace mlafix {
#define GEN_PASS_DEF_LOADONEHOTPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

namespace {
/// A reduction whose result is a single element of `row`: the sum of a row with
/// at most one nonzero element, or the maximum of a row of floats with at most
/// one element other than -inf.
struct OneHot {
  ReduceOp reduction;
  Value row;
  // The index (i32) of this element, which may be out of range.
  Value label;
  llvm::SetVector<Operation *> program; // ops that compute `row`, in order
};
} // namespace

/// Returns the value of all elements of a row if it is a splat, else null.
static Value getUniform(Value row) {
  auto splat = row.getDefiningOp<SplatOp>();
  return splat ? splat->getOperand(0) : Value();
}

static bool isZero(Value row) {
  Value number = getUniform(row);
  return matchPattern(number ? number : row, m_AnyZeroFloat()) ||
         matchPattern(number ? number : row, m_Zero());
}

static bool isNegativeInfinity(Value row) {
  Value number = getUniform(row);
  return matchPattern(number ? number : row, m_NegInfFloat());
}

/// Returns true if `other` is neutral in a reduction of `kind`: if all elements
/// of a row but one are `other`, the result is this one element.
static bool isNeutral(ReduceKind kind, Value other) {
  return (kind == ReduceKind::add && isZero(other)) ||
         (kind == ReduceKind::max && isNegativeInfinity(other));
}

/// Returns true if no launch may write the memory that `load` reads.
static bool readsInputAlone(KernelOp kernel, LoadOp load) {
  BlockArgument source = getKernelArgument(load.getSource());
  if (!source || kernel.isArgPeers(source.getArgNumber()) ||
      kernel.getArgAccess(source.getArgNumber()) != "read")
    return false;
  for (unsigned other = 0; other < kernel.getNumArguments(); ++other)
    if (other != source.getArgNumber() &&
        isa<MemRefType>(kernel.getArgumentTypes()[other]) &&
        kernel.getArgAccess(other) != "read" &&
        mayBeOneTensor(kernel, other, source.getArgNumber()))
      return false;
  return true;
}

/// Returns true if an element of `row` can be computed without the other
/// elements. Adds the ops that compute it to `program`.
static bool collect(KernelOp kernel, Value row,
                    llvm::SetVector<Operation *> &program) {
  Operation *op = row.getDefiningOp();
  if (!op || program.contains(op))
    return op;
  if (auto load = dyn_cast<LoadOp>(op)) {
    // An element smaller than a byte has no address of its own, so it cannot be
    // loaded alone.
    bool isByItself =
        getDTypeBits(load.getSource().getType().getElementType()) >= 8;
    if (load.getGroup() || load.getMember() || load.getBegin() || !isByItself ||
        !readsInputAlone(kernel, load))
      return false;
  } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (!isa<SplatElementsAttr>(constant.getValue()))
      return false;
  } else if (!isa<SplatOp, IotaOp>(op) &&
             (!OpTrait::hasElementwiseMappableTraits(op) ||
              op->getNumResults() != 1)) {
    return false;
  }
  for (Value operand : op->getOperands())
    if (isRowTile(operand.getType()) && !collect(kernel, operand, program))
      return false;
  program.insert(op);
  return true;
}

static std::optional<OneHot> match(KernelOp kernel, ReduceOp reduction) {
  OneHot result;
  result.reduction = reduction;
  DimAttr dim = getTileDim(reduction.getSource().getType());
  auto choice = reduction.getSource().getDefiningOp<arith::SelectOp>();
  if (isRowTile(reduction.getType()) || !choice ||
      !isNeutral(reduction.getKind(), choice.getFalseValue()) ||
      dim.isProduct() || dim.isPerGroup() || dim.isBounded() ||
      !dim.isBound() || dim.getSize() < 2)
    return std::nullopt;
  auto isHere = choice.getCondition().getDefiningOp<arith::CmpIOp>();
  if (!isHere || isHere.getPredicate() != arith::CmpIPredicate::eq)
    return std::nullopt;
  Value indices = isHere.getLhs(), labels = isHere.getRhs();
  if (!indices.getDefiningOp<IotaOp>())
    std::swap(indices, labels);
  result.row = choice.getTrueValue();
  result.label = getUniform(labels);
  if (!indices.getDefiningOp<IotaOp>() || !result.label ||
      !collect(kernel, result.row, result.program) ||
      llvm::none_of(result.program, llvm::IsaPred<LoadOp>))
    return std::nullopt;
  return result;
}

/// Builds the neutral element of `reduction`.
static Value buildNeutral(OpBuilder &b, ReduceOp reduction) {
  Type type = reduction.getType();
  TypedAttr number = b.getZeroAttr(type);
  if (reduction.getKind() == ReduceKind::max) {
    auto real = cast<FloatType>(type);
    number = b.getFloatAttr(
        real, APFloat::getInf(real.getFloatSemantics(), /*Negative=*/true));
  }
  return arith::ConstantOp::create(b, reduction.getLoc(), number);
}

/// Builds the single element to which `oneHot` reduces its row, or the neutral
/// element of the reduction if the index is out of range.
static Value buildElement(OpBuilder &b, OneHot &oneHot) {
  Location loc = oneHot.reduction.getLoc();
  Type type = oneHot.reduction.getType();
  int64_t size = getTileDim(oneHot.row.getType()).getSize();
  IndexBuilder x(b, loc);
  Value isInside = x.ult(oneHot.label, x.i32(size));
  Value index = x.toIndex(oneHot.label);
  IRMapping elements;
  for (Operation *op : oneHot.program) {
    Value row = op->getResult(0), element;
    Type scalar = getElementTypeOrSelf(row.getType());
    if (auto load = dyn_cast<LoadOp>(op)) {
      SmallVector<Value> indices(load.getIndices());
      indices.push_back(index);
      element = LoadOp::create(b, loc, scalar, load.getSource(), indices,
                               both(b, loc, load.getPredicate(), isInside),
                               load.getOther());
    } else if (isa<IotaOp>(op)) {
      element = oneHot.label;
    } else if (Value number = getUniform(row)) {
      element = number;
    } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      auto all = cast<SplatElementsAttr>(constant.getValue());
      element =
          arith::ConstantOp::create(b, loc, all.getSplatValue<TypedAttr>());
    } else {
      SmallVector<Value> operands;
      for (Value operand : op->getOperands())
        operands.push_back(elements.lookupOrDefault(operand));
      OperationState state(loc, op->getName(), operands, {scalar},
                           op->getAttrs());
      element = b.create(state)->getResult(0);
    }
    elements.map(row, element);
  }
  Value neutral = buildNeutral(b, oneHot.reduction);
  Value result = arith::SelectOp::create(b, loc, isInside,
                                         elements.lookup(oneHot.row), neutral);
  bool adds =
      isa<FloatType>(type) && oneHot.reduction.getKind() == ReduceKind::add;
  return adds ? Value(arith::AddFOp::create(b, loc, result, neutral)) : result;
}

namespace {
class LoadOneHotPass : public mlafix::impl::LoadOneHotPassBase<LoadOneHotPass> {
public:
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    SmallVector<ReduceOp> reductions;
    kernel.walk([&](ReduceOp reduction) { reductions.push_back(reduction); });
    for (ReduceOp reduction : reductions) {
      std::optional<OneHot> oneHot = match(kernel, reduction);
      if (!oneHot)
        continue;
      LDBG() << kernel.getSymName() << ": a reduction of one element of "
             << oneHot->row;
      OpBuilder b(reduction);
      reduction.replaceAllUsesWith(buildElement(b, *oneHot));
      reduction.erase();
    }
  }
};
} // namespace
