//===- RaggedStores.cpp - stores in the body of a ragged grid -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Grid/RaggedStores.h"
#include "dialect/MemoryAccess.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
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
    // It suffices to compare arguments, since two arguments that a kernel
    // writes are never the same tensor.
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
        return llvm::any_of(op->getOperandTypes(), isRowTile);
      }))
    return {};
  IndexStores found = {stores, {}};
  for (Operation &op : body) // in program order
    if (slice.contains(&op))
      found.ops.push_back(&op);
  return found;
}

bool mlafix::storesScalarsAlone(Block &body, const IndexStores &scalars) {
  return llvm::all_of(body.without_terminator(), [&](Operation &op) {
    return isMemoryEffectFree(&op) || llvm::is_contained(scalars.stores, &op);
  });
}

bool mlafix::onlyStores(Block &body) {
  return llvm::all_of(body, [](Operation &op) {
    std::optional<SmallVector<MemoryEffects::EffectInstance>> effects =
        getEffectsRecursively(&op);
    return effects && llvm::all_of(*effects, [](auto &effect) {
             return isa<MemoryEffects::Write>(effect.getEffect());
           });
  });
}
