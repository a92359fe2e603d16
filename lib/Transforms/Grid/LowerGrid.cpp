//===- LowerGrid.cpp - lower a grid to threads or loops -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Grid/Strategies.h"
#include "lib/Transforms/Grid/Thread.h"
#include "lib/Transforms/GridLowering.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Target.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-lower-grid"

namespace mlafix {
#define GEN_PASS_DEF_LOWERGRIDPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

static LogicalResult lowerForGPU(KernelOp kernel, Operation *grid) {
  auto forall = dyn_cast<ForallOp>(grid);
  if (forall && kernel.getLayoutAttr().isGrouped()) {
    lowerToGroups(kernel, forall);
    return success();
  }
  if (failed(verifyLanes(kernel)))
    return failure();
  if (forall)
    lowerToThreads(kernel, forall);
  else
    lowerRagged(kernel, cast<RaggedForallOp>(grid));
  return success();
}

static void lowerForCPU(KernelOp kernel, Operation *grid) {
  auto forall = dyn_cast<ForallOp>(grid);
  if (forall && kernel.getLayoutAttr().getRows() > 1)
    lowerToBatches(kernel, forall);
  else
    lowerToLoops(kernel, grid);
}

namespace {
class LowerGridPass : public mlafix::impl::LowerGridPassBase<LowerGridPass> {
public:
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    if (failed(verifyPlanned(kernel)))
      return signalPassFailure();
    Operation *grid = kernel.getGrid();
    if (!grid)
      return;
    LDBG() << kernel.getSymName() << ": " << grid->getName() << " with "
           << kernel.getLayoutAttr();
    if (!isGPU(getTarget(kernel)))
      lowerForCPU(kernel, grid);
    else if (failed(lowerForGPU(kernel, grid)))
      signalPassFailure();
  }
};
} // namespace
