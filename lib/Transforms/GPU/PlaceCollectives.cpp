//===- PlaceCollectives.cpp - ranks wait for each other -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/RowProgram.h"
#include "lib/Transforms/GridBody.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-place-collectives"

namespace mlafix {
#define GEN_PASS_DEF_PLACECOLLECTIVESPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

namespace {
class PlaceCollectivesPass
    : public mlafix::impl::PlaceCollectivesPassBase<PlaceCollectivesPass> {
public:
  void runOnOperation() override;
};
} // namespace

/// What `op` of the kernel's top level holds the row's program, or is it.
static Operation *findProgram(KernelOp kernel) {
  for (Operation &op : kernel.getBody().front())
    if (op.walk([](RowOp) { return WalkResult::interrupt(); }).wasInterrupted())
      return &op;
  return nullptr;
}

/// NaN, or all bits of an integer.
static Value buildMark(OpBuilder &b, Location loc, Type type) {
  Type element = getElementTypeOrSelf(type);
  auto real = dyn_cast<FloatType>(element);
  TypedAttr mark = real ? TypedAttr(b.getFloatAttr(
                              real, APFloat::getQNaN(real.getFloatSemantics())))
                        : TypedAttr(b.getIntegerAttr(element, -1));
  Value scalar = arith::ConstantOp::create(b, loc, mark);
  return type == element ? scalar
                         : Value(SplatOp::create(b, loc, type, scalar));
}

/// Has `program` not read the peers' memory: a mark takes the place of each
/// element, and of the result of a merge loop over them, whose chunks would
/// take shared memory of their own.
static void markPeers(KernelOp kernel, Operation *program) {
  SetVector<Operation *> marked;
  program->walk([&](LoadOp load) {
    BlockArgument argument = getKernelArgument(load.getSource());
    if (!argument || !kernel.isArgPeers(argument.getArgNumber()))
      return;
    auto loop = load->getParentOfType<MergeLoopOp>();
    marked.insert(loop ? loop.getOperation() : load.getOperation());
  });
  for (Operation *op : marked) {
    OpBuilder b(op);
    for (Value result : op->getResults())
      result.replaceAllUsesWith(buildMark(b, op->getLoc(), result.getType()));
    op->erase();
  }
}

void PlaceCollectivesPass::runOnOperation() {
  KernelOp kernel = getOperation();
  if (failed(verifyPlanned(kernel)))
    return signalPassFailure();
  if (!kernel.isCollective() || !isGPU(getTarget(kernel)))
    return;
  Operation *program = findProgram(kernel);
  if (!program) {
    kernel.emitError() << "expected the program of a row in a collective "
                          "kernel, got none";
    return signalPassFailure();
  }
  LDBG() << kernel.getSymName() << ": its ranks wait for each other";
  OpBuilder b(program);
  Location loc = program->getLoc();
  Value arrived = WaitPeersOp::create(b, loc, b.getI1Type());
  auto branch = scf::IfOp::create(b, loc, arrived, /*withElseRegion=*/false);
  Value valid = ReleasePeersOp::create(b, loc, b.getI1Type(), arrived);
  // Behind the release: what was read is known to be the peers' only then.
  Value isMarked = arith::XOrIOp::create(
      b, loc, valid, arith::ConstantIntOp::create(b, loc, true, 1));
  auto marks = scf::IfOp::create(b, loc, isMarked, /*withElseRegion=*/false);
  OpBuilder marked(marks.thenBlock()->getTerminator());
  markPeers(kernel, marked.clone(*program));
  program->moveBefore(branch.thenBlock()->getTerminator());
}
