//===- Presence.cpp - optional arguments ----------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Language/Presence.h"
#include "lib/Transforms/AccessPredicate.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlafix;

/// Replaces a comparison of tensors, one of which is omitted. Two omitted
/// tensors count as the same.
static void replaceSame(OpBuilder &b, SameTensorOp same, Value argument) {
  Location loc = same.getLoc();
  Value other = same.getLhs() == argument ? same.getRhs() : same.getLhs();
  BlockArgument given = getKernelArgument(other);
  KernelOp kernel = getKernelOf(given);
  bool isAbsent = other == argument || kernel.isArgAbsent(given.getArgNumber());
  Value result = arith::ConstantIntOp::create(b, loc, isAbsent, 1);
  if (Value present = isAbsent ? Value() : buildPresent(b, loc, other))
    result = arith::XOrIOp::create(
        b, loc, present, arith::ConstantIntOp::create(b, loc, true, 1));
  same.replaceAllUsesWith(result);
}

static void replacePresent(KernelOp kernel, unsigned index, bool isPresent) {
  for (Operation *user :
       llvm::make_early_inc_range(kernel.getArgument(index).getUsers()))
    if (auto present = dyn_cast<PresentOp>(user)) {
      OpBuilder b(present);
      Value known =
          arith::ConstantIntOp::create(b, present.getLoc(), isPresent, 1);
      present.replaceAllUsesWith(known);
      present.erase();
    }
}

void mlafix::bindAsPresent(KernelOp kernel, unsigned index) {
  replacePresent(kernel, index, true);
  kernel.removeArgAttr(index, kOptionalAttr);
}

/// Replaces a load from an omitted tensor. The value is zero where the
/// predicate holds, else the `else` value.
static void replaceLoad(OpBuilder &b, LoadOp load) {
  Location loc = load.getLoc();
  Type element = getElementTypeOrSelf(load.getType());
  Value value = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
  if (Value other = load.getOther())
    value = arith::SelectOp::create(b, loc, load.getPredicate(), value, other);
  if (isRowTile(load.getType()))
    value = SplatOp::create(b, loc, load.getType(), value);
  load.replaceAllUsesWith(value);
}

/// Drops `argument` from the store. Returns true if the store still has an
/// effect.
static bool dropFromStore(StoreStateOp store, Value argument) {
  if (store.getOut() == argument) {
    store.getOutMutable().clear();
    store.getOutIndicesMutable().clear();
    store.getScaleMutable().clear();
  }
  if (store.getLse() == argument) {
    store.getLseMutable().clear();
    store.getLseIndicesMutable().clear();
  }
  return store.getOut() || store.getLse();
}

LogicalResult mlafix::bindAsAbsent(KernelOp kernel, unsigned index) {
  replacePresent(kernel, index, false);
  Value argument = kernel.getArgument(index);
  while (!argument.use_empty()) {
    Operation *user = *argument.user_begin();
    OpBuilder b(user);
    if (auto load = dyn_cast<LoadStateOp>(user)) {
      Value identity = IdentityOp::create(b, load.getLoc(), load.getType());
      load.replaceAllUsesWith(identity);
    } else if (auto store = dyn_cast<StoreStateOp>(user)) {
      if (dropFromStore(store, argument))
        continue;
    } else if (auto load = dyn_cast<LoadOp>(user)) {
      replaceLoad(b, load);
    } else if (auto load = dyn_cast<LoadIntoOp>(user)) {
      Type element = getElementTypeOrSelf(load.getType());
      Value zero =
          arith::ConstantOp::create(b, load.getLoc(), b.getZeroAttr(element));
      load.replaceAllUsesWith(
          SplatOp::create(b, load.getLoc(), load.getType(), zero).getResult());
    } else if (auto same = dyn_cast<SameTensorOp>(user)) {
      replaceSame(b, same, argument);
    } else if (auto dim = dyn_cast<memref::DimOp>(user)) {
      // A launch passes size 0 for an omitted tensor.
      Value none = arith::ConstantIndexOp::create(b, dim.getLoc(), 0);
      dim.replaceAllUsesWith(none);
    } else if (!isa<StoreOp, DistinctOp>(user)) {
      return user->emitError()
             << "expected a load, a store or a memref.dim of argument '"
             << kernel.getArgName(index) << "', which is bound to " << kAbsent
             << ", got '" << user->getName() << "'";
    }
    user->erase();
  }
  kernel.setArgAttr(index, kAccessAttr,
                    StringAttr::get(kernel.getContext(), kAbsent));
  return success();
}

void mlafix::eraseDead(KernelOp kernel) {
  IRRewriter rewriter(kernel.getContext());
  (void)runRegionDCE(rewriter, kernel->getRegions());
}
