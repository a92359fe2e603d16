//===- PeerWaitLoads.cpp - moves loads out of waits for ranks -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/MlafixToNVVM/PeerWaitLoads.h"

#include "dialect/Plan.h"
#include "lib/Transforms/Speculation.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlafix;

static bool mayStore(Operation *op) {
  return anyOp<LLVM::StoreOp>(
      op, [](LLVM::StoreOp store) { return isGlobal(store.getAddr()); });
}

/// Returns the unconditional loads in `guard` that may move before it. If the
/// stores in `guard` go to the memory of other ranks (`toPeers`), no load reads
/// what they write, so all loads may move. Otherwise, only the loads before the
/// first store may.
static SmallVector<LLVM::LoadOp> collectLoads(scf::IfOp guard, bool toPeers) {
  SmallVector<LLVM::LoadOp> loads;
  for (Operation &op : *guard.thenBlock()) {
    if (!toPeers && mayStore(&op))
      break;
    if (auto load = dyn_cast<LLVM::LoadOp>(op);
        load && isGlobal(load.getAddr()))
      loads.push_back(load);
  }
  return loads;
}

/// True if `load` can become a predicated load, without a branch. It must load
/// 1, 2, 4 or 8 words of 32 bits, at an address aligned for GPU accesses.
static bool canBePredicated(LLVM::LoadOp load) {
  auto vector = dyn_cast<VectorType>(load.getType());
  uint64_t bits =
      vector ? vector.getNumElements() * vector.getElementTypeBitWidth()
             : load.getType().getIntOrFloatBitWidth();
  std::optional<uint64_t> alignment = load.getAlignment();
  return (bits == 32 || bits == 64 || bits == 128 || bits == 256) &&
         (!alignment || *alignment >= std::min<uint64_t>(bits / 8, 16));
}

/// Moves loads of this rank's own tensors out of `guard`, before `place`. Moves
/// at most as many loads as the plan's field ExchangeLoads allows.
static void loadAhead(scf::IfOp guard, ArrayRef<LLVM::LoadOp> loads,
                      Operation *place) {
  auto plan =
      place->getParentOfType<LLVM::LLVMFuncOp>()->getAttrOfType<PlanAttr>(
          kPlanAttr);
  int64_t most = plan.getNumber(PlanField::ExchangeLoads), count = 0;
  OpBuilder b(place);
  for (LLVM::LoadOp load : loads) {
    if (count == most)
      return;
    if (!moveBeforeWait(load.getAddr(), place) ||
        !moveBeforeWait(guard.getCondition(), place))
      continue;
    if (!canBePredicated(load))
      continue;
    load.replaceAllUsesWith(
        PredicatedLoadOp::create(b, load.getLoc(), load.getType(),
                                 load.getAddr(), guard.getCondition())
            .getResult());
    load.erase();
    ++count;
  }
}

/// True if `op`, or an op inside it, stores to this rank's own tensors. `op`
/// lies between the two ends of an exchange. Addresses of other ranks' tensors
/// come from a table, so they are not known before `begin`. A store whose
/// address is known before `begin` therefore goes to an own tensor.
static bool storesOwn(Operation *op, Operation *begin) {
  return anyOp<LLVM::StoreOp>(op, [&](LLVM::StoreOp store) {
    return isGlobal(store.getAddr()) && isKnownBefore(store.getAddr(), begin);
  });
}

void mlafix::loadAheadOfWaits(BeginExchangeOp begin) {
  Operation *end = begin;
  SmallVector<scf::IfOp> guards;
  for (; !isa<EndExchangeOp>(end); end = end->getNextNode()) {
    if (auto guard = dyn_cast<scf::IfOp>(end))
      guards.push_back(guard);
    if (storesOwn(end, begin))
      return;
  }
  for (scf::IfOp guard : guards)
    loadAhead(guard, collectLoads(guard, /*toPeers=*/true), begin);
  for (Operation *user : end->getResult(0).getUsers())
    if (auto arrived = dyn_cast<scf::IfOp>(user))
      for (auto guard : arrived.thenBlock()->getOps<scf::IfOp>())
        loadAhead(guard, collectLoads(guard, /*toPeers=*/false), end);
}
