//===- PlaceLaunches.cpp - rows are asked for before a row's index --------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Where a load's address comes of another load, ptxas 13.0 issues the first of
// the other rows' loads, then waits for the one that has the address, and then
// issues the rest. It moves nothing across `griddepcontrol.launch_dependents`,
// which waits for nothing itself: that comes behind the rows that need no
// memory to be found, and before all else.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/MlafixToNVVM/EarlyLoads.h"
#include "lib/Conversion/Passes.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-place-launches"

namespace mlafix {
#define GEN_PASS_DEF_PLACELAUNCHESPASS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// The branch that is all that follows `launch`; null if there is more.
static scf::IfOp getGuard(Operation *launch) {
  Operation *op = launch->getNextNode();
  while (op && isMemoryEffectFree(op))
    op = op->getNextNode();
  auto guard = dyn_cast_or_null<scf::IfOp>(op);
  return guard && guard.getNumResults() == 0 ? guard : scf::IfOp();
}

/// Whether `value` is computed from what is loaded in `block`.
static bool needsMemory(Value value, Block &block) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != &block)
    return false;
  return !isPure(op) || op->getNumRegions() ||
         llvm::any_of(op->getOperands(), [&](Value operand) {
           return needsMemory(operand, block);
         });
}

/// Whether `op` loads a pack without a predicate.
static bool isRowLoad(Operation &op) {
  auto load = dyn_cast<LLVM::LoadOp>(op);
  auto type = load ? dyn_cast<VectorType>(load.getType()) : VectorType();
  return type && type.getNumElements() > 1 && isGlobal(load.getAddr());
}

/// The rows that are found without memory, if they come before the first write
/// and some load beside them needs what another one gives; else none.
static SmallVector<LLVM::LoadOp> collectRows(Block &block) {
  SmallVector<LLVM::LoadOp> rows;
  bool hasIndex = false;
  for (Operation &op : block) {
    if (isMemoryEffectFree(&op))
      continue;
    if (!isa<LLVM::LoadOp, LLVM::MaskedLoadOp>(op))
      break;
    bool needs = llvm::any_of(op.getOperands(), [&](Value operand) {
      return needsMemory(operand, block);
    });
    hasIndex |= needs;
    if (!needs && isRowLoad(op))
      rows.push_back(cast<LLVM::LoadOp>(op));
  }
  if (!hasIndex)
    rows.clear();
  return rows;
}

/// The launch as assembly that LLVM takes for a store: it would move loads
/// across the intrinsic.
static Operation *buildLaunchAssembly(OpBuilder &b, Location loc) {
  return LLVM::InlineAsmOp::create(
      b, loc, TypeRange(), ValueRange(), "griddepcontrol.launch_dependents;",
      "~{memory}", /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(),
      ArrayAttr());
}

namespace {
class PlaceLaunchesPass
    : public mlafix::impl::PlaceLaunchesPassBase<PlaceLaunchesPass> {
public:
  void runOnOperation() override {
    SmallVector<Operation *> launches;
    getOperation().walk([&](Operation *op) {
      if (isGridControl(op) && !isGridWait(op))
        launches.push_back(op);
    });
    for (Operation *launch : launches)
      if (scf::IfOp guard = getGuard(launch))
        place(launch, *guard.thenBlock());
  }

private:
  static void place(Operation *launch, Block &block);
};
} // namespace

void PlaceLaunchesPass::place(Operation *launch, Block &block) {
  SmallVector<LLVM::LoadOp> rows = collectRows(block);
  llvm::erase_if(rows, [&](LLVM::LoadOp row) {
    return !moveBeforeWait(row.getAddr(), launch);
  });
  if (rows.empty())
    return;
  LDBG() << rows.size() << " loads before " << *launch;
  auto b = OpBuilder::atBlockBegin(&block);
  Operation *later = buildLaunchAssembly(b, launch->getLoc());
  for (LLVM::LoadOp row : rows)
    row->moveBefore(later);
  launch->erase();
}
