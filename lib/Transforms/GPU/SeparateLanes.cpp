//===- SeparateLanes.cpp - lanes of a row wait for each other -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/RowOps.h"
#include "lib/Transforms/LaneConflicts.h"
#include "lib/Transforms/Passes.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
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
  LaneSeparation(KernelOp kernel, RowOp row) : kernel(kernel), row(row) {}

  void run() {
    SmallVector<LaneAccess> open;
    separate(row.getBody().front(), open);
  }

private:
  /// `open`: the accesses since the last barrier.
  void separate(Block &block, SmallVector<LaneAccess> &open);
  void meetBefore(Operation *op, ArrayRef<LaneAccess> accesses,
                  SmallVector<LaneAccess> &open);
  void buildBarrier(OpBuilder &b, Location loc) {
    if (kernel.getLayoutAttr().getLanes() > 32)
      NVVM::BarrierOp::create(b, loc);
    else
      NVVM::SyncWarpOp::create(b, loc, row.getMembers());
  }

  KernelOp kernel;
  RowOp row;
};
} // namespace

/// Adds the accesses that `open` lacks. What is alike is kept once, or every
/// branch would double the list.
static void addAccesses(SmallVector<LaneAccess> &open,
                        ArrayRef<LaneAccess> accesses) {
  for (const LaneAccess &access : accesses)
    if (!llvm::is_contained(open, access))
      open.push_back(access);
}

void LaneSeparation::meetBefore(Operation *op, ArrayRef<LaneAccess> accesses,
                                SmallVector<LaneAccess> &open) {
  bool conflicts = llvm::any_of(accesses, [&](const LaneAccess &a) {
    return llvm::any_of(
        open, [&](const LaneAccess &b) { return mayConflict(kernel, a, b); });
  });
  if (!conflicts)
    return;
  LDBG() << "lanes meet before " << *op;
  OpBuilder b(op);
  buildBarrier(b, op->getLoc());
  open.clear();
}

void LaneSeparation::separate(Block &block, SmallVector<LaneAccess> &open) {
  for (Operation &op : block) {
    SmallVector<LaneAccess> inside;
    if (isa<LoopLikeOpInterface>(op))
      op.walk([&](Operation *nested) {
        if (std::optional<LaneAccess> access = getLaneAccess(nested))
          addAccesses(inside, *access);
      });
    meetBefore(&op, inside, open);
    for (Region &region : op.getRegions()) {
      SmallVector<LaneAccess> before = open;
      for (Block &nested : region) {
        separate(nested, open);
        // What is open at the end of an iteration meets the next one.
        meetBefore(nested.getTerminator(), inside, open);
      }
      addAccesses(open, before);
    }
    if (std::optional<LaneAccess> access = getLaneAccess(&op)) {
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
      if (row.getMembers())
        LaneSeparation(getOperation(), row).run();
    });
  }
};
} // namespace
