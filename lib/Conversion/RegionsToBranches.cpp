//===- RegionsToBranches.cpp - lowers regions to branches -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/Passes.h"

#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"
#include "mlir/Rewrite/PatternApplicator.h"

namespace mlafix {
#define GEN_PASS_DEF_REGIONSTOBRANCHESPASS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

namespace {
/// A rewriter that erases ops only in its destructor. The patterns are written
/// for the conversion driver, which defers erasure, too: they read operands of
/// ops that were already replaced.
class KeepingRewriter final : public PatternRewriter {
public:
  using PatternRewriter::PatternRewriter;
  ~KeepingRewriter() override {
    for (Operation *op : erased)
      op->dropAllReferences();
    for (Operation *op : erased)
      op->destroy();
  }
  KeepingRewriter(const KeepingRewriter &) = delete;
  KeepingRewriter &operator=(const KeepingRewriter &) = delete;

  void eraseOp(Operation *op) override {
    op->remove();
    erased.push_back(op);
  }

private:
  SmallVector<Operation *> erased;
};

class RegionsToBranchesPass
    : public mlafix::impl::RegionsToBranchesPassBase<RegionsToBranchesPass> {
public:
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet made(context);
    populateSCFToControlFlowConversionPatterns(made);
    patterns = FrozenRewritePatternSet(std::move(made));
    return success();
  }

  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<scf::SCFDialect>(op->getDialect()) && op->getNumRegions() > 0)
        ops.push_back(op);
    });
    PatternApplicator applicator(patterns);
    applicator.applyDefaultCostModel();
    KeepingRewriter rewriter(&getContext());
    // Convert the last op of a block first. Each conversion moves the part of
    // the block behind its op. In this order the part is short, because it ends
    // at the branch that replaced the next op. Convert outer ops before inner
    // ones, because the pattern for `scf.while` requires regions of one block.
    for (Operation *op : llvm::reverse(ops)) {
      rewriter.setInsertionPoint(op);
      if (succeeded(applicator.matchAndRewrite(op, rewriter)))
        continue;
      op->emitError() << "expected an scf operation that converts to branches, "
                         "as scf.for, scf.if and scf.while do, got '"
                      << op->getName() << "'";
      return signalPassFailure();
    }
  }

private:
  FrozenRewritePatternSet patterns;
};
} // namespace
