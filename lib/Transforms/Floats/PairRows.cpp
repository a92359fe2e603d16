//===- PairRows.cpp - process rows of bf16 as pairs in words --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/ElementaryMath.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-pair-rows"

namespace mlafix {
#define GEN_PASS_DEF_PAIRROWSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// Returns true if `value` is a splat, which stays the same in any order of
/// elements.
static bool isSplat(Value value) {
  if (auto broadcast = value.getDefiningOp<vector::BroadcastOp>())
    return !isa<VectorType>(broadcast.getSource().getType());
  DenseElementsAttr constant;
  return matchPattern(value, m_Constant(&constant)) && constant.isSplat();
}

static bool isWidening(Operation *op) {
  return isa<arith::ExtFOp>(op) &&
         getElementTypeOrSelf(op->getOperand(0).getType()).isBF16();
}

static bool isNarrowing(Operation *op) {
  return isa<arith::TruncFOp>(op) &&
         getElementTypeOrSelf(op->getResult(0).getType()).isBF16();
}

/// Returns true if `value` is a vector of one dimension with an even number of
/// elements.
static bool isOfPairs(Value value) {
  auto type = dyn_cast<VectorType>(value.getType());
  return type && type.getRank() == 1 && type.getNumElements() % 2 == 0;
}

/// Returns the conversions from and to bf16 whose wide vectors may hold their
/// elements in any order. The conversions are in program order.
static SmallVector<Operation *> findPairedConversions(KernelOp kernel) {
  // Vectors that elementwise ops connect form a class: their elements have the
  // same order. This order must be the order in memory if one of the vectors is
  // an operand or a result of an op that is not elementwise.
  llvm::EquivalenceClasses<void *> classes;
  llvm::SmallVector<void *> inOrder;
  SmallVector<Operation *> conversions;
  auto idOf = [](Value value) { return value.getAsOpaquePointer(); };
  kernel.walk([&](Operation *op) {
    bool widens = isWidening(op), narrows = isNarrowing(op);
    bool isElementwise = OpTrait::hasElementwiseMappableTraits(op);
    if (widens || narrows)
      conversions.push_back(op);
    // Vectors that a loop carries stay in the order in memory, because they are
    // not in the class of the vectors that the preceding iteration yielded.
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        if (isa<VectorType>(argument.getType())) {
          classes.insert(idOf(argument));
          inOrder.push_back(idOf(argument));
        }
    void *first = nullptr;
    auto visit = [&](Value value) {
      if (!isa<VectorType>(value.getType()) || isSplat(value))
        return;
      void *id = idOf(value);
      classes.insert(id);
      if (!isElementwise || !isOfPairs(value))
        inOrder.push_back(id);
      if (first)
        classes.unionSets(first, id);
      else
        first = id;
    };
    // Vectors of bf16 are always in the order in memory, so they are in no
    // class.
    if (!widens)
      llvm::for_each(op->getOperands(), visit);
    if (!narrows)
      llvm::for_each(op->getResults(), visit);
  });

  llvm::SmallPtrSet<void *, 16> ordered;
  for (void *id : inOrder)
    ordered.insert(classes.getLeaderValue(id));
  SmallVector<Operation *> paired;
  for (Operation *op : conversions) {
    Value wide = isWidening(op) ? op->getResult(0) : op->getOperand(0);
    if (isOfPairs(wide) && !isSplat(wide) &&
        !ordered.contains(classes.getLeaderValue(idOf(wide))))
      paired.push_back(op);
  }
  return paired;
}

static constexpr uint32_t kUpperHalf = 0xffff0000;

/// Widens `x`, a vector of bf16, as words of two elements. The result contains
/// the lower elements of all words, followed by the upper elements.
static Value extendPairs(OpBuilder &b, Location loc, Value x) {
  int64_t size = cast<VectorType>(x.getType()).getNumElements();
  auto half = VectorType::get({size / 2}, b.getI32Type());
  ShapedBuilder s(b, loc, half);
  Value words = vector::BitCastOp::create(b, loc, half, x);
  Value lower = s.floatOf(s.op<arith::ShLIOp>(words, s.i(16))),
        upper = s.floatOf(s.op<arith::AndIOp>(words, s.i(kUpperHalf)));
  return vector::ShuffleOp::create(
      b, loc, lower, upper, llvm::to_vector(llvm::seq<int64_t>(0, size)));
}

/// Builds the inverse of extendPairs(): narrows `x` to bf16 and packs one lower
/// and one upper element into each word.
static Value truncatePairs(OpBuilder &b, Location loc, Value x, Type type) {
  int64_t size = cast<VectorType>(type).getNumElements();
  Value rounded = roundToBF16(ShapedBuilder(b, loc, x.getType()), x);
  auto half = [&](int64_t begin) -> Value {
    return vector::ShuffleOp::create(
        b, loc, rounded, rounded,
        llvm::to_vector(llvm::seq<int64_t>(begin, begin + size / 2)));
  };
  Value lower = half(0), upper = half(size / 2);
  ShapedBuilder s(b, loc, lower.getType());
  upper = s.op<arith::AndIOp>(upper, s.i(kUpperHalf));
  lower = s.op<arith::ShRUIOp>(lower, s.i(16));
  Value words = s.op<arith::OrIOp>(lower, upper);
  return vector::BitCastOp::create(b, loc, type, words);
}

namespace {
class PairRowsPass : public mlafix::impl::PairRowsPassBase<PairRowsPass> {
public:
  void runOnOperation() override {
    if (isGPU(getTarget(getOperation())))
      return;
    SmallVector<Operation *> conversions =
        findPairedConversions(getOperation());
    LDBG() << getOperation().getSymName() << ": " << conversions.size()
           << " conversions of pairs";
    for (Operation *op : conversions) {
      OpBuilder b(op);
      Value x = op->getOperand(0);
      Type type = op->getResult(0).getType();
      op->getResult(0).replaceAllUsesWith(
          isWidening(op) ? extendPairs(b, op->getLoc(), x)
                         : truncatePairs(b, op->getLoc(), x, type));
      op->erase();
    }
  }
};
} // namespace
