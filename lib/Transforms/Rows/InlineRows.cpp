//===- InlineRows.cpp - merge a row's program into the thread's -----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/MlafixThread.h"
#include "lib/Transforms/Passes.h"

#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-inline-rows"

namespace mlafix {
#define GEN_PASS_DEF_INLINEROWSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

namespace {
class InlineRowsPass : public mlafix::impl::InlineRowsPassBase<InlineRowsPass> {
public:
  void runOnOperation() override {
    SmallVector<RowOp> rows;
    getOperation().walk([&](RowOp row) { rows.push_back(row); });
    for (RowOp row : rows) {
      LDBG() << getOperation().getSymName() << ": inlines a row";
      Block &body = row.getBody().front();
      for (Operation &op :
           llvm::make_early_inc_range(body.without_terminator()))
        op.moveBefore(row);
      row.erase();
    }
  }
};
} // namespace
