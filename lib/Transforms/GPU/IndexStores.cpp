//===- IndexStores.cpp - stores of what depends on indices alone ----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GPU/IndexStores.h"
#include "lib/Transforms/LaneConflicts.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlafix;

IndexStores mlafix::findIndexStores(Block &body) {
  SmallVector<StoreOp> stores;
  SmallVector<LaneAccess> rows;
  for (Operation &op : body.without_terminator()) {
    auto store = dyn_cast<StoreOp>(op);
    if (!store && !isMemoryEffectFree(&op))
      return {};
    if (!store)
      continue;
    if (isRowTile(store.getValue().getType()))
      rows.push_back(*getLaneAccess(store));
    else
      stores.push_back(store);
  }
  llvm::SetVector<Operation *> slice;
  for (StoreOp store : stores) {
    LaneAccess access = *getLaneAccess(store);
    // Two tensors that are written are never the same one.
    if (llvm::any_of(rows, [&](const LaneAccess &row) {
          return row.argument == access.argument;
        }))
      return {};
    BackwardSliceOptions options;
    options.inclusive = true;
    options.filter = [&](Operation *op) { return op->getBlock() == &body; };
    (void)getBackwardSlice(store.getOperation(), &slice, options);
  }
  if (llvm::any_of(slice, [](Operation *op) {
        return llvm::any_of(op->getOperandTypes(),
                            [](Type type) { return isRowTile(type); });
      }))
    return {};
  IndexStores found = {stores, {}};
  for (Operation &op : body) // in their order
    if (slice.contains(&op))
      found.ops.push_back(&op);
  return found;
}
