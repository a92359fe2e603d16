//===- Distribute.cpp - one row's program becomes a thread's program -*- C++
//-*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Distribute.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

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

namespace {
/// One access of the row's program, as far as another lane may notice it.
struct Access {
  Type element;
  bool isTile;
  bool isWrite;

  /// Lanes move their own elements of a row, in program order; anything else
  /// may meet another lane's access.
  bool conflictsWith(const Access &other) const {
    return (isWrite || other.isWrite) && element == other.element &&
           !(isTile && other.isTile);
  }
};
} // namespace

static std::optional<Access> getAccess(Operation *op) {
  if (auto load = dyn_cast<LoadOp>(op))
    return Access{cast<MemRefType>(load.getSource().getType()).getElementType(),
                  isRowTile(load.getType()), false};
  if (auto store = dyn_cast<StoreOp>(op))
    return Access{
        cast<MemRefType>(store.getTarget().getType()).getElementType(),
        isRowTile(store.getValue().getType()), true};
  return std::nullopt;
}

/// Puts a barrier before each access that may touch what another lane of the
/// row has yet to read or write (N11): outputs may be inputs, so a store of one
/// lane could otherwise overtake another lane's load of the same scalar.
static void separateAccesses(Block &block, const RowContext &context,
                             SmallVector<Access> &open) {
  for (Operation &op : block) {
    bool isLoop = isa<LoopLikeOpInterface>(op);
    SmallVector<Access> inside;
    if (isLoop)
      op.walk([&](Operation *nested) {
        if (std::optional<Access> access = getAccess(nested))
          inside.push_back(*access);
      });
    auto conflicts = [&] {
      return llvm::any_of(inside, [&](const Access &a) {
        return llvm::any_of(
            open, [&](const Access &b) { return a.conflictsWith(b); });
      });
    };
    if (conflicts()) {
      OpBuilder b(&op);
      context.barrier(b, op.getLoc());
      open.clear();
    }
    for (Region &region : op.getRegions()) {
      SmallVector<Access> before = open;
      for (Block &nested : region) {
        separateAccesses(nested, context, open);
        // What is open at the end of an iteration meets the next one.
        if (conflicts()) {
          OpBuilder b(nested.getTerminator());
          context.barrier(b, op.getLoc());
          open.clear();
        }
      }
      open.append(before);
    }
    std::optional<Access> access = getAccess(&op);
    if (!access)
      continue;
    if (llvm::any_of(open, [&](const Access &other) {
          return access->conflictsWith(other);
        })) {
      OpBuilder b(&op);
      context.barrier(b, op.getLoc());
      open.clear();
    }
    open.push_back(*access);
  }
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
    FailureOr<RowContext> context = distributeGrid(kernel, target);
    if (failed(context))
      return signalPassFailure();
    if (context->isGPU && context->layout.getLanes() > 1) {
      SmallVector<Access> open;
      separateAccesses(*context->row, *context, open);
    }
    if (failed(distributeRows(kernel, *context)))
      return signalPassFailure();
  }
};
} // namespace
