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

/// The op that widens words into the operand `index` of `yield`; null for
/// another.
static arith::ExtFOp getWidening(scf::YieldOp yield, unsigned index) {
  auto widening = yield.getOperand(index).getDefiningOp<arith::ExtFOp>();
  return widening && fillsWords(widening.getIn().getType()) ? widening
                                                            : arith::ExtFOp();
}

/// Has `yield` yield what `widening` widens.
static void yieldNarrow(scf::YieldOp yield, unsigned index,
                        arith::ExtFOp widening) {
  yield->setOperand(index, widening.getIn());
  if (widening->use_empty())
    widening.erase();
}

/// Words that each branch widens are widened behind the branches: half as many
/// registers join there, and what masks them masks words.
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

/// The ops of `ops`, in their order, that only extremes of a whole row use: of
/// packs, of halves, and in the end of two elements, which make any NaN the
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

/// The row of `element` that `row` was widened from, or that is the same
/// constant; null if there is none.
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

/// What the rows that `op` uses are widened from: floats of 16 bits that fill
/// words; null if nothing is.
static FloatType getNarrowElement(Operation *op) {
  for (Value operand : op->getOperands())
    if (auto widening = operand.getDefiningOp<arith::ExtFOp>();
        widening && fillsWords(widening.getIn().getType()))
      return cast<FloatType>(getElementTypeOrSelf(widening.getIn()));
  return {};
}

/// Computes `op`, a part of an extreme, of the narrow rows, and widens the
/// result: it is one of their elements. Returns whether it does.
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

/// True if `op` is in branches of `block`, and in no loop.
static bool isInBranch(Operation *op, Block *block) {
  while (op && op->getBlock() != block) {
    op = op->getParentOp();
    if (!isa_and_nonnull<scf::IfOp>(op))
      return false;
  }
  return op;
}

/// In the branches that use it `widening` is done again.
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

/// True if `narrow` is a row of which an extreme is computed as it is.
static bool hasNarrowExtreme(Value narrow) {
  return llvm::any_of(narrow.getUsers(), [](Operation *user) {
    return isExtreme(user) || isa<arith::SelectOp, math::AbsFOp>(user);
  });
}

/// Rows whose extreme is known before they are widened are widened where they
/// are first used then. In a branch, as where a lane looks for an index, they
/// are widened again if `isSeparate`: kept until then, they would take twice
/// the registers.
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

/// True if `op` makes a row of rows, and nothing else.
static bool computesRow(Operation &op) {
  return isa<arith::ArithDialect, math::MathDialect, vector::VectorDialect>(
             op.getDialect()) &&
         op.getNumResults() == 1 && isa<VectorType>(op.getResultTypes()[0]) &&
         op.getNumRegions() == 0 && isMemoryEffectFree(&op);
}

/// Moves what is computed of rows to where it is used first: one pack after the
/// other, in place of one operation of all packs after the other.
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
