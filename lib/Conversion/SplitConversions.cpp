//===- SplitConversions.cpp - routes conversions of narrow floats by f32 --===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-split-conversions"

namespace mlafix {
#define GEN_PASS_DEF_SPLITCONVERSIONSPASS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlafix

using namespace mlir;

static bool isNarrow(Type type) {
  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
  return element && element.getWidth() < 32;
}

/// Returns f32 in the shape of `type`.
static Type getWide(Type type) {
  Type f32 = Float32Type::get(type.getContext());
  auto shaped = dyn_cast<ShapedType>(type);
  return shaped ? Type(shaped.clone(f32)) : f32;
}

/// Routes a conversion between narrow floats and other types through f32.
/// The operand stays narrow if `op` is an extension. The result stays narrow if
/// `op` is a truncation.
static void splitConversion(Operation *op) {
  Value from = op->getOperand(0), to = op->getResult(0);
  bool ends = isa<arith::TruncFOp>(op), begins = isa<arith::ExtFOp>(op);
  OpBuilder b(op);
  if (isNarrow(from.getType()) && !begins)
    op->setOperand(0, arith::ExtFOp::create(b, op->getLoc(),
                                            getWide(from.getType()), from));
  if (isNarrow(to.getType()) && !ends) {
    LDBG() << "by way of f32: " << *op;
    Type type = to.getType();
    to.setType(getWide(type));
    b.setInsertionPointAfter(op);
    auto narrow = arith::TruncFOp::create(b, op->getLoc(), type, to);
    to.replaceAllUsesExcept(narrow, narrow);
  }
}

namespace {
class SplitConversionsPass
    : public mlafix::impl::SplitConversionsPassBase<SplitConversionsPass> {
public:
  void runOnOperation() override {
    SmallVector<Operation *> conversions;
    getOperation().walk([&](Operation *op) {
      if (isa<CastOpInterface>(op) && op->getNumOperands() == 1 &&
          isa<arith::ArithDialect>(op->getDialect()) &&
          !isa<arith::BitcastOp>(op))
        conversions.push_back(op);
    });
    llvm::for_each(conversions, splitConversion);
  }
};
} // namespace
