//===- WidenBF16.cpp - bf16 to f32 where f16 is stored -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/ElementaryMath.h"
#include "lib/Conversion/Passes.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-widen-bf16"

namespace mlafix {
#define GEN_PASS_DEF_WIDENBF16PASS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

namespace {
class WidenBF16Pass : public mlafix::impl::WidenBF16PassBase<WidenBF16Pass> {
public:
  void runOnOperation() override {
    if (!isGPU(getTarget(getOperation())))
      return;
    SmallVector<arith::ExtFOp> widenings;
    bool narrowsToF16 = false;
    getOperation().walk([&](Operation *op) {
      if (auto widening = dyn_cast<arith::ExtFOp>(op);
          widening && getElementTypeOrSelf(widening.getIn()).isBF16())
        widenings.push_back(widening);
      if (isa<arith::TruncFOp>(op))
        narrowsToF16 |= getElementTypeOrSelf(op->getResult(0)).isF16();
    });
    if (!narrowsToF16)
      return;
    for (arith::ExtFOp widening : widenings) {
      LDBG() << "in integers: " << widening;
      OpBuilder b(widening);
      ShapedBuilder s(b, widening.getLoc(), widening.getType());
      widening.replaceAllUsesWith(extendBF16(s, widening.getIn()));
      widening.erase();
    }
  }
};
} // namespace
