//===- Speculation.cpp - arithmetic that may precede a wait ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Speculation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlafix;

/// Returns true if `op` is pure arithmetic that may be speculated. The divisor
/// of a division must be a positive constant. Another divisor could be zero,
/// and a branch that prevents the division by zero would be ignored.
static bool isComputableAnywhere(Operation *op) {
  if (op->getNumRegions() || !isPure(op))
    return false;
  if (!isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
           arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp,
           LLVM::SDivOp, LLVM::UDivOp, LLVM::SRemOp, LLVM::URemOp>(op))
    return true;
  APInt divisor;
  return matchPattern(op->getOperand(1), m_ConstantInt(&divisor)) &&
         divisor.isStrictlyPositive();
}

bool mlafix::collectSlice(Value value, Operation *wait, const IRMapping &starts,
                          llvm::SetVector<Operation *> &slice) {
  if (starts.contains(value))
    return true;
  Operation *op = value.getDefiningOp();
  // An argument of the function or of a loop is known before the wait if the
  // wait is inside this function or loop.
  if (!op)
    return cast<BlockArgument>(value).getOwner()->getParentOp()->isAncestor(
        wait);
  if (slice.contains(op))
    return true;
  Operation *ancestor = wait->getBlock()->findAncestorOpInBlock(*op);
  if (!ancestor) // defined outside the block of the wait, so before it
    return true;
  if (ancestor != wait && ancestor->isBeforeInBlock(wait))
    return true;
  if (!isComputableAnywhere(op))
    return false;
  for (Value operand : op->getOperands())
    if (!collectSlice(operand, wait, starts, slice))
      return false;
  slice.insert(op);
  return true;
}

bool mlafix::isKnownBefore(Value value, Operation *wait) {
  llvm::SetVector<Operation *> slice;
  return collectSlice(value, wait, IRMapping(), slice);
}

bool mlafix::moveBeforeWait(Value value, Operation *wait) {
  llvm::SetVector<Operation *> slice;
  if (!collectSlice(value, wait, IRMapping(), slice))
    return false;
  for (Operation *op : slice)
    op->moveBefore(wait);
  return true;
}

/// Implements isAlike(). `known` caches the answers, so that a pair of values
/// with many uses is compared only once.
static bool isAlike(Value x, Value y,
                    llvm::DenseMap<std::pair<Value, Value>, bool> &known) {
  if (x == y)
    return true;
  Operation *a = x.getDefiningOp(), *b = y.getDefiningOp();
  if (!a || !b || !isPure(a) || a->getNumResults() != 1 ||
      a->getNumRegions() != 0 || a->getName() != b->getName() ||
      a->getAttrs() != b->getAttrs() || x.getType() != y.getType() ||
      a->getNumOperands() != b->getNumOperands())
    return false;
  auto it = known.find({x, y});
  if (it != known.end())
    return it->second;
  bool alike = llvm::all_of_zip(
      a->getOperands(), b->getOperands(),
      [&](Value p, Value q) { return ::isAlike(p, q, known); });
  known.insert({{x, y}, alike});
  return alike;
}

bool mlafix::isAlike(Value x, Value y) {
  llvm::DenseMap<std::pair<Value, Value>, bool> known;
  return ::isAlike(x, y, known);
}

bool mlafix::isGlobal(Value pointer) {
  constexpr unsigned kGlobal = 1;
  return cast<LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace() ==
         kGlobal;
}

Value mlafix::bothHold(OpBuilder &b, Value x, Value y) {
  if (!x)
    return y;
  Value no = arith::ConstantIntOp::create(b, y.getLoc(), false, 1);
  return arith::SelectOp::create(b, y.getLoc(), x, y, no);
}
