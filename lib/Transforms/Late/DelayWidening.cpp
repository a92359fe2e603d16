//===- DelayWidening.cpp - rows of 16 bits stay narrow --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Late/Words.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-delay-widening"

namespace mlafix {
#define GEN_PASS_DEF_DELAYWIDENINGPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

bool mlafix::fillsWords(Type type, unsigned bits) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getRank() == 1 &&
         vector.getElementTypeBitWidth() == bits &&
         vector.getNumElements() * bits % 32 == 0;
}

Operation *mlafix::findFirstUse(Block *block, Operation *row) {
  Operation *first = nullptr;
  for (Operation *user : row->getUsers())
    if (Operation *found = block->findAncestorOpInBlock(*user);
        found && (!first || found->isBeforeInBlock(first)))
      first = found;
  return first;
}

Operation *mlafix::cloneBefore(Operation *place, Operation *row) {
  Operation *clone = OpBuilder(place).clone(*row);
  Block *block = place->getBlock();
  row->getResult(0).replaceUsesWithIf(clone->getResult(0), [&](OpOperand &use) {
    return block->findAncestorOpInBlock(*use.getOwner());
  });
  return clone;
}

std::optional<APFloat> mlafix::convertExactly(APFloat number, FloatType type) {
  bool isInexact = false;
  number.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                 &isInexact);
  if (isInexact || number.isNaN())
    return std::nullopt;
  return number;
}

/// The op that widens words into operand `index` of `yield`, or null.
static arith::ExtFOp getWidening(scf::YieldOp yield, unsigned index) {
  auto widening = yield.getOperand(index).getDefiningOp<arith::ExtFOp>();
  return widening && fillsWords(widening.getIn().getType()) ? widening
                                                            : arith::ExtFOp();
}

/// Makes `yield` yield the operand of `widening` instead of its result.
static void yieldNarrow(scf::YieldOp yield, unsigned index,
                        arith::ExtFOp widening) {
  yield->setOperand(index, widening.getIn());
  if (widening->use_empty())
    widening.erase();
}

/// If both branches widen a value, widens it behind them: half as many
/// registers cross the join, and masks apply to words.
static void widenBehind(scf::IfOp branch) {
  SmallVector<Type> types(branch.getResultTypes());
  SmallVector<unsigned> moved;
  for (unsigned i = 0; i < types.size(); ++i) {
    scf::YieldOp yields[] = {branch.thenYield(), branch.elseYield()};
    arith::ExtFOp first = getWidening(yields[0], i),
                  second = getWidening(yields[1], i);
    if (!first || !second ||
        first.getIn().getType() != second.getIn().getType())
      continue;
    moved.push_back(i);
    types[i] = first.getIn().getType();
    yieldNarrow(yields[0], i, first);
    yieldNarrow(yields[1], i, second);
  }
  if (moved.empty())
    return;
  LDBG() << moved.size() << " rows are widened behind " << branch.getLoc();
  OpBuilder b(branch);
  auto narrow =
      scf::IfOp::create(b, branch.getLoc(), types, branch.getCondition(),
                        /*withElseRegion=*/true);
  narrow.getThenRegion().takeBody(branch.getThenRegion());
  narrow.getElseRegion().takeBody(branch.getElseRegion());
  SmallVector<Value> results(narrow.getResults());
  for (unsigned i : moved)
    results[i] = arith::ExtFOp::create(
        b, branch.getLoc(), branch.getResult(i).getType(), results[i]);
  branch.replaceAllUsesWith(results);
  branch.erase();
}

static bool isExtreme(Operation *op) {
  return isa<arith::MaximumFOp, arith::MinimumFOp>(op);
}

/// The ops of `ops`, in order, that are used only by extremes of a whole row:
/// of packs, of halves, and finally of two elements. These map every NaN to the
/// same one.
static DenseSet<Operation *> findPartsOfExtremes(ArrayRef<Operation *> ops) {
  DenseSet<Operation *> parts;
  for (Operation *op : llvm::reverse(ops)) {
    bool isLast = isa<vector::ExtractOp>(op);
    bool isPart =
        isLast || isExtreme(op) ||
        isa<arith::SelectOp, math::AbsFOp, vector::ExtractStridedSliceOp>(op);
    if (!isPart || op->use_empty() || op->getNumResults() != 1)
      continue;
    if (!isLast && !isa<VectorType>(op->getResultTypes()[0]))
      continue;
    if (llvm::all_of(op->getUsers(), [&](Operation *user) {
          return isLast ? isExtreme(user) : parts.contains(user);
        }))
      parts.insert(op);
  }
  return parts;
}

/// The narrow row (of `element`) that `row` was widened from, or the same
/// constant in the narrow type; null if there is neither.
static Value getNarrow(OpBuilder &b, Value row, FloatType element) {
  if (auto widening = row.getDefiningOp<arith::ExtFOp>())
    return getElementTypeOrSelf(widening.getIn()) == element ? widening.getIn()
                                                             : Value();
  APFloat number(0.0f);
  if (!matchPattern(row, m_ConstantFloat(&number)))
    return {};
  std::optional<APFloat> narrow = convertExactly(number, element);
  if (!narrow)
    return {};
  auto type = cast<ShapedType>(row.getType()).clone(element);
  return arith::ConstantOp::create(b, row.getLoc(),
                                   DenseElementsAttr::get(type, *narrow));
}

/// The 16-bit float type that the row operands of `op` were widened from and
/// that fills words; null if there is none.
static FloatType getNarrowElement(Operation *op) {
  for (Value operand : op->getOperands())
    if (auto widening = operand.getDefiningOp<arith::ExtFOp>();
        widening && fillsWords(widening.getIn().getType()))
      return cast<FloatType>(getElementTypeOrSelf(widening.getIn()));
  return {};
}

/// Computes `op`, part of an extreme, on the narrow rows and widens the result,
/// which is one of the elements. Returns true on success.
static bool computeNarrow(Operation *op) {
  FloatType element = getNarrowElement(op);
  if (!element)
    return false;
  OpBuilder b(op);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    bool isCondition = getElementTypeOrSelf(operand.getType()).isInteger(1);
    operands.push_back(isCondition ? operand : getNarrow(b, operand, element));
    if (!operands.back())
      return false;
  }
  Type wide = op->getResultTypes()[0];
  Operation *narrow = b.clone(*op);
  narrow->setOperands(operands);
  narrow->getResult(0).setType(cast<VectorType>(wide).clone(element));
  LDBG() << "of " << element << ": " << *op;
  op->getResult(0).replaceAllUsesWith(
      arith::ExtFOp::create(b, op->getLoc(), wide, narrow->getResult(0)));
  op->erase();
  return true;
}

/// True if `op` is nested in branches of `block` but in no loop.
static bool isInBranch(Operation *op, Block *block) {
  while (op && op->getBlock() != block) {
    op = op->getParentOp();
    if (!isa_and_nonnull<scf::IfOp>(op))
      return false;
  }
  return op;
}

/// Repeats `widening` in the branches that use it.
static void widenInBranches(arith::ExtFOp widening) {
  llvm::SmallSetVector<Block *, 4> blocks;
  for (Operation *user : widening->getUsers())
    if (user->getBlock() != widening->getBlock() &&
        isInBranch(user, widening->getBlock()))
      blocks.insert(user->getBlock());
  for (Block *block : blocks)
    if (Operation *first = findFirstUse(block, widening))
      cloneBefore(first, widening)
          ->setAttr(kSeparateAttr, UnitAttr::get(widening.getContext()));
}

/// True if an extreme of the row `narrow` is computed without widening.
static bool hasNarrowExtreme(Value narrow) {
  return llvm::any_of(narrow.getUsers(), [](Operation *user) {
    return isExtreme(user) || isa<arith::SelectOp, math::AbsFOp>(user);
  });
}

/// Sinks the widening of rows whose extreme is known beforehand to their first
/// use. In a branch, such as the one where a lane searches for an index, widens
/// again if `isSeparate`: keeping the wide row until then would take twice the
/// registers.
static void widenLate(ArrayRef<arith::ExtFOp> widenings, bool isSeparate) {
  for (arith::ExtFOp widening : widenings) {
    if (!hasNarrowExtreme(widening.getIn()))
      continue;
    if (isSeparate && getElementTypeOrSelf(widening.getIn()).isBF16())
      widenInBranches(widening);
    if (Operation *first = findFirstUse(widening->getBlock(), widening))
      widening->moveBefore(first);
  }
}

/// True if `op` is pure arithmetic from rows to rows.
static bool computesRow(Operation &op) {
  return isa<arith::ArithDialect, math::MathDialect, vector::VectorDialect>(
             op.getDialect()) &&
         op.getNumResults() == 1 && isa<VectorType>(op.getResultTypes()[0]) &&
         op.getNumRegions() == 0 && isMemoryEffectFree(&op);
}

/// Sinks row arithmetic to its first use, so that packs are processed one after
/// the other instead of each op on all packs.
static void computeInTurn(Block *block) {
  SmallVector<Operation *> ops;
  for (Operation &op : *block)
    if (computesRow(op))
      ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    if (Operation *first = findFirstUse(block, op))
      op->moveBefore(first);
}

/// True if `kernel` stores rows.
static bool storesRows(KernelOp kernel) {
  return kernel
      .walk([](Operation *op) {
        return isa<vector::StoreOp, vector::MaskedStoreOp>(op)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

namespace {
class DelayWideningPass
    : public mlafix::impl::DelayWideningPassBase<DelayWideningPass> {
public:
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    MachineModel machine = getMachine(kernel);
    if (!isGPU(getTarget(kernel)) || machine.pairArithmetic)
      return;
    kernel.walk(widenBehind);
    if (!machine.narrowExtremes)
      return;
    bool hasExtremes = false;
    SmallVector<Operation *> ops;
    kernel.walk([&](Operation *op) { ops.push_back(op); });
    DenseSet<Operation *> parts = findPartsOfExtremes(ops);
    for (Operation *op : ops)
      if (parts.contains(op) && !isa<vector::ExtractOp>(op))
        hasExtremes |= computeNarrow(op);
    if (!hasExtremes)
      return;
    SmallVector<arith::ExtFOp> widenings;
    kernel.walk([&](arith::ExtFOp op) { widenings.push_back(op); });
    widenLate(widenings, machine.bf16Conversion);
    if (kernel.getLayoutAttr().getPacks() >= machine.inTurnPacks &&
        storesRows(kernel))
      kernel.walk([&](Block *block) { computeInTurn(block); });
  }
};
} // namespace
