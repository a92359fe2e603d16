//===- SeparateLanes.cpp - lanes of a row wait for each other -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/RowProgram.h"
#include "lib/Machine/MachineModel.h"
#include "lib/Transforms/Layout/LaneConflicts.h"
#include "lib/Transforms/Layout/RowLayout.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/ThreadOps.h"

#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-separate-lanes"

namespace mlafix {
#define GEN_PASS_DEF_SEPARATELANESPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

namespace {
/// Puts a barrier before each access of a row's program that may touch what
/// another lane has yet to read or write.
class LaneSeparation {
public:
  LaneSeparation(KernelOp kernel, RowOp row)
      : kernel(kernel), row(row), layout(kernel) {}

  void run() {
    SmallVector<MemoryAccess> open;
    separate(row.getBody().front(), open);
  }

private:
  /// `open`: the accesses since the last barrier.
  void separate(Block &block, SmallVector<MemoryAccess> &open);
  bool meet(const MemoryAccess &a, const MemoryAccess &b);
  void meetBefore(Operation *op, ArrayRef<MemoryAccess> accesses,
                  SmallVector<MemoryAccess> &open);
  void buildBarrier(OpBuilder &b, Operation *op) {
    if (layout.layout.getLanes() > kWarpThreads)
      mlafix::buildBarrier(b, op->getLoc());
    else
      buildWarpBarrier(b, op->getLoc(), layout.maskAt(b, op));
  }

  KernelOp kernel;
  RowOp row;
  RowLayout layout;
};
} // namespace

/// Adds the accesses that `open` lacks. Equal accesses are kept once, or every
/// branch would double the list.
static void addAccesses(SmallVector<MemoryAccess> &open,
                        ArrayRef<MemoryAccess> accesses) {
  for (const MemoryAccess &access : accesses)
    if (llvm::none_of(open, [&](const MemoryAccess &other) {
          return conflictAlike(access, other);
        }))
      open.push_back(access);
}

/// No call makes one tensor of arguments whose dims differ, as those of an
/// element a group and of an lse do. Kernels without groups keep the barriers
/// that they were measured with.
bool LaneSeparation::meet(const MemoryAccess &a, const MemoryAccess &b) {
  bool isOneShape = (!a.isPerGroup() && !b.isPerGroup()) ||
                    kernel.getArgDims(a.getArgNumber()) ==
                        kernel.getArgDims(b.getArgNumber());
  return isOneShape && mayConflict(kernel, a, b);
}

void LaneSeparation::meetBefore(Operation *op, ArrayRef<MemoryAccess> accesses,
                                SmallVector<MemoryAccess> &open) {
  bool conflicts = llvm::any_of(accesses, [&](const MemoryAccess &a) {
    return llvm::any_of(open,
                        [&](const MemoryAccess &b) { return meet(a, b); });
  });
  if (!conflicts)
    return;
  LDBG() << "lanes synchronise before " << *op;
  OpBuilder b(op);
  buildBarrier(b, op);
  open.clear();
}

void LaneSeparation::separate(Block &block, SmallVector<MemoryAccess> &open) {
  for (Operation &op : block) {
    SmallVector<MemoryAccess> inside;
    if (isa<LoopLikeOpInterface>(op))
      addAccesses(inside, collectAccesses(&op));
    meetBefore(&op, inside, open);
    for (Region &region : op.getRegions()) {
      SmallVector<MemoryAccess> before = open;
      for (Block &nested : region) {
        separate(nested, open);
        // Accesses that are open at the end of an iteration conflict with the
        // next one.
        meetBefore(nested.getTerminator(), inside, open);
      }
      addAccesses(open, before);
    }
    if (std::optional<MemoryAccess> access = getSingleAccess(&op)) {
      meetBefore(&op, *access, open);
      addAccesses(open, *access);
    }
  }
}

namespace {
class SeparateLanesPass
    : public mlafix::impl::SeparateLanesPassBase<SeparateLanesPass> {
public:
  void runOnOperation() override {
    getOperation().walk([&](RowOp row) {
      if (row.getMask())
        LaneSeparation(getOperation(), row).run();
    });
  }
};
} // namespace
