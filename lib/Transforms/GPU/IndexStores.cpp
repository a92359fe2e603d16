//===- IndexStores.cpp - stores of what depends on indices alone ----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GPU/IndexStores.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlafix;

IndexStores mlafix::findIndexStores(Block &body) {
  SmallVector<StoreOp> stores;
  SmallVector<MemoryAccess> rows;
  for (Operation &op : body.without_terminator()) {
    auto store = dyn_cast<StoreOp>(op);
    if (!store && !isMemoryEffectFree(&op))
      return {};
    if (!store)
      continue;
    if (isRowTile(store.getValue().getType()))
      rows.push_back(*getSingleAccess(store));
    else
      stores.push_back(store);
  }
  llvm::SetVector<Operation *> slice;
  for (StoreOp store : stores) {
    MemoryAccess access = *getSingleAccess(store);
    // Two tensors that are written are never the same one.
    if (llvm::any_of(rows, [&](const MemoryAccess &row) {
          return row.memref == access.memref;
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
