//===- SlicesToShuffles.cpp - prepares vectors for convert-to-llvm --------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/Passes.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlafix {
#define GEN_PASS_DEF_SLICESTOSHUFFLESPASS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

namespace {
class SlicesToShufflesPass
    : public mlafix::impl::SlicesToShufflesPassBase<SlicesToShufflesPass> {
public:
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet made(context);
    vector::populateVectorInsertExtractStridedSliceTransforms(made);
    patterns = FrozenRewritePatternSet(std::move(made));
    return success();
  }

  void runOnOperation() override {
    // Do not merge equal blocks if there are hundreds: MLIR may take minutes
    // for them.
    constexpr size_t kMostMerged = 128;
    GreedyRewriteConfig config;
    if (llvm::any_of(getOperation()->getRegions(), [](Region &region) {
          return region.getBlocks().size() > kMostMerged;
        }))
      config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Normal);
    // Ignore a failure: if slices remain, the translation to LLVM IR fails.
    (void)applyPatternsGreedily(getOperation(), patterns, config);
  }

private:
  FrozenRewritePatternSet patterns;
};
} // namespace
