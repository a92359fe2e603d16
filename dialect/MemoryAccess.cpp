//===- MemoryAccess.cpp - reads and writes of tensors ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Mlafix.h"

#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlafix;

#include "dialect/MlafixInterfaces.cpp.inc"

BlockArgument MemoryAccess::getArgument() const {
  return getKernelArgument(memref);
}

DimAttr MemoryAccess::getRowDim() const {
  if (!isTile)
    return {};
  for (Type type :
       llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes())) {
    if (isRowTile(type))
      return getTileDim(type);
    if (auto state = dyn_cast<StateType>(type))
      return state.getDim();
  }
  return {};
}

bool MemoryAccess::isPerGroup() const {
  return isTile && getRowDim().isPerGroup();
}

DimAttr MemoryAccess::getProduct() const {
  int64_t rank = cast<MemRefType>(memref.getType()).getRank();
  DimAttr dim = rank ? getArgumentDim(memref, rank - 1) : DimAttr();
  return dim && dim.isProduct() ? dim : DimAttr();
}

std::optional<int64_t> MemoryAccess::getMovedMember() const {
  APInt number;
  if (!isTile || !member || isPerGroup() ||
      !matchPattern(member, m_ConstantInt(&number)))
    return std::nullopt;
  int64_t size = getProduct().getGroup().getSize();
  if (!llvm::isPowerOf2_64(size) || number.uge(size) ||
      size * getDTypeBytes(getElementType()) > kGroupBytes)
    return std::nullopt;
  return number.getSExtValue();
}

int64_t MemoryAccess::getMovedBits() const {
  int64_t elements = getMovedMember() ? getProduct().getGroup().getSize() : 1;
  return elements * getDTypeBits(getElementType());
}

//===----------------------------------------------------------------------===//
// The ops' accesses
//===----------------------------------------------------------------------===//

SmallVector<MemoryAccess, 2> LoadOp::getAccesses() {
  return {{*this, getSource(), getIndices(), getPredicate(), /*isWrite=*/false,
           isRowTile(getType()), /*isState=*/false, getGroup(), getMember()}};
}

SmallVector<MemoryAccess, 2> StoreOp::getAccesses() {
  return {{*this, getTarget(), getIndices(), getPredicate(), /*isWrite=*/true,
           isRowTile(getValue().getType()), /*isState=*/false, getGroup(),
           getMember()}};
}

SmallVector<MemoryAccess, 2> StoreMembersOp::getAccesses() {
  return {{*this, getTarget(), getIndices(), getPredicate(), /*isWrite=*/true,
           /*isTile=*/true, /*isState=*/false, /*group=*/{}, /*member=*/{},
           /*allMembers=*/true}};
}

SmallVector<MemoryAccess, 2> LoadStateOp::getAccesses() {
  return {{*this, getOut(), getOutIndices(), getPredicate(), /*isWrite=*/false,
           /*isTile=*/true, /*isState=*/true},
          {*this, getLse(), getLseIndices(), getPredicate(), /*isWrite=*/false,
           /*isTile=*/false, /*isState=*/true}};
}

SmallVector<MemoryAccess, 2> StoreStateOp::getAccesses() {
  SmallVector<MemoryAccess, 2> accesses;
  if (getOut())
    accesses.push_back({*this, getOut(), getOutIndices(), getPredicate(),
                        /*isWrite=*/true, /*isTile=*/true, /*isState=*/true});
  if (getLse())
    accesses.push_back({*this, getLse(), getLseIndices(), getPredicate(),
                        /*isWrite=*/true, /*isTile=*/false, /*isState=*/true});
  return accesses;
}

//===----------------------------------------------------------------------===//
// Enumeration and order
//===----------------------------------------------------------------------===//

SmallVector<MemoryAccess> mlafix::collectAccesses(Operation *root) {
  SmallVector<MemoryAccess> accesses;
  root->walk<WalkOrder::PreOrder>([&](MemoryAccessOpInterface op) {
    llvm::append_range(accesses, op.getAccesses());
  });
  return accesses;
}

std::optional<MemoryAccess> mlafix::getSingleAccess(Operation *op) {
  auto access = dyn_cast<MemoryAccessOpInterface>(op);
  if (!access || isa<LoadStateOp, StoreStateOp>(op))
    return std::nullopt;
  return access.getAccesses().front();
}

bool mlafix::mayWrite(Operation *op) {
  return op
      ->walk([](Operation *nested) {
        auto effects = dyn_cast<MemoryEffectOpInterface>(nested);
        bool isHarmless =
            nested->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
            isMemoryEffectFree(nested) ||
            (effects && effects.onlyHasEffect<MemoryEffects::Read>());
        return isHarmless ? WalkResult::advance() : WalkResult::interrupt();
      })
      .wasInterrupted();
}

bool mlafix::mayWriteBetween(Operation *first, Operation *last) {
  for (Operation *op = first->getNextNode(); op != last; op = op->getNextNode())
    if (mayWrite(op))
      return true;
  return false;
}

bool mlafix::areOrdered(Operation *a, Operation *b) {
  return !isMemoryEffectFree(a) && !isMemoryEffectFree(b) &&
         (mayWrite(a) || mayWrite(b));
}
