//===- SeparateLanes.cpp - let lanes of a row wait for each other ---------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/MlafixThread.h"
#include "lib/Transforms/Layout/LaneConflicts.h"
#include "lib/Transforms/Layout/RowLayout.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/ThreadOps.h"
#include "mlafix/UnitLimits.h"

#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-separate-lanes"

namespace mlafix {
#define GEN_PASS_DEF_SEPARATELANESPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

namespace {
/// Inserts a barrier before each access that may touch memory which an earlier
/// access of another lane has yet to read or write.
class LaneSeparation {
public:
  LaneSeparation(KernelOp kernel, RowOp row)
      : kernel(kernel), row(row), layout(kernel),
        kinds([this](const MemoryAccess &a, const MemoryAccess &b) {
          return meet(a, b);
        }) {}
  LaneSeparation(const LaneSeparation &) = delete;
  LaneSeparation &operator=(const LaneSeparation &) = delete;

  void run() {
    collectKinds(row);
    KindSet open(kinds.size());
    separate(row.getBody().front(), open);
  }

private:
  /// A set of kinds of accesses (AccessKinds).
  using KindSet = llvm::BitVector;

  std::optional<unsigned> getKind(Operation &op);
  KindSet collectKinds(Operation *op);
  /// Inserts barriers into `block`. `open` holds the kinds of the accesses
  /// since the last barrier, and is updated.
  void separate(Block &block, KindSet &open);
  bool meet(const MemoryAccess &a, const MemoryAccess &b);
  void meetBefore(Operation *op, unsigned kind, KindSet &open);
  void meetBefore(Operation *op, const KindSet &accesses, KindSet &open);
  void buildBarrierBefore(Operation *op, KindSet &open);

  KernelOp kernel;
  RowOp row;
  RowLayout layout;
  AccessKinds kinds;
  // Kinds of the accesses in each loop.
  llvm::DenseMap<Operation *, KindSet> inLoops;
};
} // namespace

/// Returns true if `a` and `b` conflict (mayConflict) and their arguments may
/// be the same tensor. Arguments with different dims are never the same tensor:
/// for example, a tensor with one element per group and an lse. Dims are
/// compared only if `a` or `b` accesses a row of one element per group. So
/// kernels without such rows keep the barriers with which they were measured.
bool LaneSeparation::meet(const MemoryAccess &a, const MemoryAccess &b) {
  bool isOneShape = (!a.isPerGroup() && !b.isPerGroup()) ||
                    kernel.getArgDims(a.getArgNumber()) ==
                        kernel.getArgDims(b.getArgNumber());
  return isOneShape && mayConflict(kernel, a, b);
}

/// Returns the kind of the access that `op` itself makes. Returns nullopt if it
/// makes none.
std::optional<unsigned> LaneSeparation::getKind(Operation &op) {
  std::optional<MemoryAccess> access = getSingleAccess(&op);
  if (!access)
    return std::nullopt;
  return kinds.getKind(*access);
}

/// Returns the kinds of the accesses in `op` and nested ops. Stores the kinds
/// of each loop in `inLoops`.
LaneSeparation::KindSet LaneSeparation::collectKinds(Operation *op) {
  KindSet inside;
  auto add = [&](const KindSet &more) { inside |= more; };
  if (std::optional<unsigned> kind = getKind(*op)) {
    inside.resize(kinds.size());
    inside.set(*kind);
  }
  for (Region &region : op->getRegions())
    for (Operation &nested : region.getOps())
      add(collectKinds(&nested));
  if (isa<LoopLikeOpInterface>(op))
    inLoops[op] = inside;
  return inside;
}

void LaneSeparation::buildBarrierBefore(Operation *op, KindSet &open) {
  LDBG() << "lanes synchronise before " << *op;
  OpBuilder b(op);
  if (layout.layout.isClustered())
    buildClusterBarrier(b, op->getLoc());
  else if (layout.layout.getLanes() > limits::warpThreads)
    mlafix::buildBarrier(b, op->getLoc());
  else
    buildWarpBarrier(b, op->getLoc(), layout.maskAt(b, op));
  open.reset();
}

void LaneSeparation::meetBefore(Operation *op, unsigned kind, KindSet &open) {
  if (open.anyCommon(kinds.getConflicts(kind)))
    buildBarrierBefore(op, open);
}

void LaneSeparation::meetBefore(Operation *op, const KindSet &accesses,
                                KindSet &open) {
  bool conflicts = llvm::any_of(accesses.set_bits(), [&](unsigned kind) {
    return open.anyCommon(kinds.getConflicts(kind));
  });
  if (conflicts)
    buildBarrierBefore(op, open);
}

void LaneSeparation::separate(Block &block, KindSet &open) {
  for (Operation &op : block) {
    const KindSet inside = inLoops.lookup(&op);
    meetBefore(&op, inside, open);
    for (Region &region : op.getRegions()) {
      KindSet before = open;
      for (Block &nested : region) {
        separate(nested, open);
        // Accesses since the last barrier of an iteration may conflict with
        // accesses of the next iteration.
        meetBefore(nested.getTerminator(), inside, open);
      }
      open |= before;
    }
    if (std::optional<unsigned> kind = getKind(op)) {
      meetBefore(&op, *kind, open);
      open.set(*kind);
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
