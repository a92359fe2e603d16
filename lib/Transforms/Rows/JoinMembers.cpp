//===- JoinMembers.cpp - join the stores of all members of a row ----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Guards.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Target.h"

#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-join-members"

namespace mlafix {
#define GEN_PASS_DEF_JOINMEMBERSPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

/// Returns the number of the member that `store` writes. Returns nullopt if
/// `store` is null or cannot be joined with the stores of the other members.
static std::optional<int64_t> getMember(StoreOp store) {
  return store ? store.getAccesses().front().getMovedMember() : std::nullopt;
}

/// Returns true if `op` may access the memory that `store` writes. Stores
/// cannot be joined across such an op.
static bool meets(KernelOp kernel, StoreOp store, Operation &op) {
  if (isMemoryEffectFree(&op))
    return false;
  std::optional<MemoryAccess> access = getSingleAccess(&op);
  if (!access || !access->getArgument())
    return true;
  return access->memref == store.getTarget() ||
         (access->getElementType() ==
              store.getAccesses().front().getElementType() &&
          !areGuardedDistinct(kernel.getGuardsAttr(), access->getArgNumber(),
                              store.getAccesses().front().getArgNumber()));
}

/// Returns the stores, `first` and later ones, that together write all members
/// of a row, indexed by member. Returns an empty vector if a member has no
/// store, or if the stores cannot be joined.
static SmallVector<StoreOp> findMembers(KernelOp kernel, StoreOp first) {
  std::optional<int64_t> member = getMember(first);
  if (!member)
    return {};
  int64_t left = first.getAccesses().front().getProduct().getGroup().getSize();
  SmallVector<StoreOp> stores(left);
  stores[*member] = first;
  --left;
  for (Operation *op = first->getNextNode(); op && left;
       op = op->getNextNode()) {
    auto store = dyn_cast<StoreOp>(op);
    std::optional<int64_t> other = getMember(store);
    bool isOfRow = other && store.getTarget() == first.getTarget() &&
                   store.getIndices() == first.getIndices() &&
                   store.getPredicate() == first.getPredicate() &&
                   store.getValue().getType() == first.getValue().getType();
    if (isOfRow && !stores[*other]) {
      stores[*other] = store;
      --left;
    } else if (meets(kernel, first, *op)) {
      return {};
    }
  }
  return left ? SmallVector<StoreOp>() : stores;
}

namespace {
class JoinMembersPass
    : public mlafix::impl::JoinMembersPassBase<JoinMembersPass> {
public:
  void runOnOperation() override {
    SmallVector<StoreOp> stores;
    getOperation().walk([&](StoreOp store) { stores.push_back(store); });
    llvm::SmallPtrSet<Operation *, 8> joined;
    for (StoreOp store : stores)
      if (!joined.contains(store))
        for (StoreOp member : join(store))
          joined.insert(member);
    for (Operation *store : joined)
      store->erase();
  }

private:
  /// Joins `first` with the stores of the other members. Returns the stores
  /// that the joined store replaces.
  SmallVector<StoreOp> join(StoreOp first) {
    SmallVector<StoreOp> members = findMembers(getOperation(), first);
    if (members.empty())
      return {};
    StoreOp last = first;
    SmallVector<Value> values;
    for (StoreOp member : members) {
      values.push_back(member.getValue());
      if (last->isBeforeInBlock(member))
        last = member;
    }
    OpBuilder b(last);
    StoreMembersOp::create(b, last.getLoc(), values, first.getTarget(),
                           first.getIndices(), first.getPredicate());
    LDBG() << getOperation().getSymName() << ": stores of " << members.size()
           << " members joined";
    return members;
  }
};
} // namespace
