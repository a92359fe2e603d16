//===- Distribute.cpp - one row's program becomes a thread's program -*- C++
//-*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Distribute.h"
#include "lib/Transforms/LaneConflicts.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/Support/MathExtras.h"

namespace mlafix {
#define GEN_PASS_DEF_DISTRIBUTEPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

SmallVector<Value> IndexBuilder::delinearize(Value linear,
                                             ArrayRef<Value> extents) {
  SmallVector<Value> indices(extents.size());
  for (size_t i = extents.size(); i-- > 1;) {
    indices[i] = rem(linear, extents[i]);
    linear = div(linear, extents[i]);
  }
  if (!extents.empty())
    indices[0] = linear;
  return indices;
}

void RowContext::barrier(OpBuilder &b, Location loc) const {
  if (!isGPU || layout.getLanes() == 1)
    return;
  if (crossesWarps())
    NVVM::BarrierOp::create(b, loc);
  else
    NVVM::SyncWarpOp::create(b, loc, rowMask);
}

/// Adds the accesses that `open` lacks. What is alike is kept once, or every
/// branch would double the list.
static void addAccesses(SmallVector<MemoryAccess> &open,
                        ArrayRef<MemoryAccess> accesses) {
  for (const MemoryAccess &access : accesses)
    if (llvm::none_of(open, [&](const MemoryAccess &other) {
          return conflictAlike(access, other);
        }))
      open.push_back(access);
}

/// Puts a barrier before each access that may touch what another lane of the
/// row has yet to read or write (N11): outputs may be inputs, so a store of one
/// lane could otherwise overtake another lane's load of the same scalar.
static void separateAccesses(KernelOp kernel, Block &block,
                             const RowContext &context,
                             SmallVector<MemoryAccess> &open) {
  for (Operation &op : block) {
    bool isLoop = isa<LoopLikeOpInterface>(op);
    SmallVector<MemoryAccess> inside;
    if (isLoop)
      addAccesses(inside, collectAccesses(&op));
    auto conflicts = [&] {
      return llvm::any_of(inside, [&](const MemoryAccess &a) {
        return llvm::any_of(open, [&](const MemoryAccess &b) {
          return mayConflict(kernel, a, b);
        });
      });
    };
    if (conflicts()) {
      OpBuilder b(&op);
      context.barrier(b, op.getLoc());
      open.clear();
    }
    for (Region &region : op.getRegions()) {
      SmallVector<MemoryAccess> before = open;
      for (Block &nested : region) {
        separateAccesses(kernel, nested, context, open);
        // What is open at the end of an iteration meets the next one.
        if (conflicts()) {
          OpBuilder b(nested.getTerminator());
          context.barrier(b, op.getLoc());
          open.clear();
        }
      }
      addAccesses(open, before);
    }
    std::optional<MemoryAccess> access = getSingleAccess(&op);
    if (!access)
      continue;
    if (llvm::any_of(open, [&](const MemoryAccess &other) {
          return mayConflict(kernel, *access, other);
        })) {
      OpBuilder b(&op);
      context.barrier(b, op.getLoc());
      open.clear();
    }
    addAccesses(open, *access);
  }
}

/// States are three values each by now (mlafix-lower-states).
static LogicalResult verifyNoStates(KernelOp kernel) {
  auto isState = [](Type type) { return isa<StateType>(type); };
  WalkResult walk = kernel.getBody().walk([&](Operation *op) {
    if (llvm::none_of(op->getOperandTypes(), isState) &&
        llvm::none_of(op->getResultTypes(), isState))
      return WalkResult::advance();
    op->emitError() << "expected rows and scalars, got a state, which "
                       "mlafix-lower-states has not seen";
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

namespace {
class DistributePass : public mlafix::impl::DistributePassBase<DistributePass> {
public:
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    StringRef target = getTarget(kernel);
    if (target.empty() || !kernel.getLayout()) {
      kernel.emitError() << "expected a kernel with a layout, got one that "
                            "mlafix-plan-layout has not seen";
      return signalPassFailure();
    }
    if (failed(verifyNoStates(kernel)))
      return signalPassFailure();
    // Lanes that share their row with other groups never meet.
    bool isGrouped = kernel.getLayoutAttr().isGrouped();
    int64_t lanes = kernel.getLayoutAttr().getLanes();
    if (!isGrouped && !llvm::isPowerOf2_64(lanes) && lanesMeet(kernel)) {
      kernel.emitError()
          << "expected a power of two of lanes in a layout whose "
             "lanes meet, got "
          << lanes;
      return signalPassFailure();
    }
    FailureOr<RowContext> context = distributeGrid(kernel, target);
    if (failed(context))
      return signalPassFailure();
    if (context->isGPU && context->layout.getLanes() > 1 && !isGrouped) {
      SmallVector<MemoryAccess> open;
      separateAccesses(kernel, *context->row, *context, open);
    }
    if (failed(distributeRows(kernel, *context)))
      return signalPassFailure();
  }
};
} // namespace
