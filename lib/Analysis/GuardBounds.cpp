//===- GuardBounds.cpp - guards accesses against their bounds -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/LaunchChecks.h"
#include "lib/Analysis/Passes.h"
#include "lib/Analysis/Proofs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-guard-bounds"

namespace mlafix {
#define GEN_PASS_DEF_GUARDBOUNDSPASS
#include "lib/Analysis/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

namespace {
/// An (index, size) pair to check: 0 <= index < size.
using Check = std::pair<Value, Value>;
using Checks = llvm::SmallSetVector<Check, 2>;

/// The checks that one op needs: those of the rows that it accesses, and those
/// of single elements, such as the lse of a state.
struct OpChecks {
  Checks rows, elements;

  Checks all() const {
    Checks checks = rows;
    checks.insert_range(elements);
    return checks;
  }
};

class GuardBoundsPass
    : public mlafix::impl::GuardBoundsPassBase<GuardBoundsPass> {
public:
  void runOnOperation() override;

private:
  Value getSize(Value memref, unsigned dim);
  FailureOr<Check> getCheck(const OpenIndex &open);
};
} // namespace

/// True if every launch passes the argument `memref`.
static bool isAlwaysGiven(KernelOp kernel, Value memref) {
  return !kernel.isArgOptional(getKernelArgument(memref).getArgNumber());
}

/// Returns the size of dim `dim` of `memref`, computed before the grid. If
/// launches may omit `memref`, prefers to take the size from an argument with
/// the same dim that every launch passes.
Value GuardBoundsPass::getSize(Value memref, unsigned dim) {
  KernelOp kernel = getOperation();
  Block &top = kernel.getBody().front();
  DimAttr name = getArgumentDim(memref, dim);
  auto isSame = [&](Value other, unsigned position) {
    return (other == memref && position == dim) ||
           (name && isAlwaysGiven(kernel, other) &&
            getArgumentDim(other, position) == name);
  };
  for (auto known : top.getOps<memref::DimOp>())
    if (isAlwaysGiven(kernel, known.getSource()) &&
        isSame(known.getSource(), *known.getConstantIndex()))
      return known;
  std::pair<Value, unsigned> source = {memref, dim};
  for (Value other : top.getArguments())
    if (auto type = dyn_cast<MemRefType>(other.getType()))
      for (unsigned position = 0; position < type.getRank(); ++position)
        if (!isAlwaysGiven(kernel, source.first) && isSame(other, position))
          source = {other, position};
  OpBuilder b = OpBuilder::atBlockBegin(&top);
  Location loc = kernel.getLoc();
  Value position = arith::ConstantIndexOp::create(b, loc, source.second);
  return b.createOrFold<memref::DimOp>(loc, source.first, position);
}

/// Returns the check of a group index against the number of groups, or of a
/// member index against the group size.
static FailureOr<Check> getPartCheck(OpBuilder &b, const MemoryAccess &access,
                                     bool isGroup) {
  DimAttr product = access.getProduct(),
          factor = isGroup ? product.getGroups() : product.getGroup();
  if (!factor.isBound())
    return access.op->emitError()
           << "expected a size for dim " << factor.str()
           << ", since an index is checked against it, got no binding of it";
  Value size =
      arith::ConstantIndexOp::create(b, access.op->getLoc(), factor.getSize());
  return Check(isGroup ? access.group : access.member, size);
}

FailureOr<Check> GuardBoundsPass::getCheck(const OpenIndex &open) {
  const MemoryAccess &access = open.access;
  unsigned count = access.indices.size();
  if (open.dim < count)
    return Check(access.indices[open.dim], getSize(access.memref, open.dim));
  OpBuilder b(access.op);
  // A slice is accessed as a whole or not at all, so check its last element.
  if (access.slice)
    return Check(arith::ConstantIndexOp::create(b, access.op->getLoc(),
                                                access.slice->end - 1),
                 getSize(access.memref, open.dim));
  return getPartCheck(b, access, open.dim == count);
}

/// Returns the conjunction of `predicate` and `checks`. A null predicate means
/// true.
static Value narrow(OpBuilder &b, Location loc, Value predicate,
                    const Checks &checks) {
  for (auto [index, size] : checks) {
    // A negative index is a large unsigned number, so one comparison suffices.
    Value inside =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index, size);
    predicate =
        predicate ? arith::AndIOp::create(b, loc, predicate, inside) : inside;
  }
  return predicate;
}

/// Guards a load, so that it yields zero if an index is out of bounds. Where
/// the kernel's own predicate is false, the load still yields its `else` value.
static void guard(LoadOp load, const Checks &checks) {
  OpBuilder b(load);
  Location loc = load.getLoc();
  Value predicate = load.getPredicate(), other = load.getOther();
  load.getPredicateMutable().assign(narrow(b, loc, predicate, checks));
  if (!other)
    return;
  load.getOtherMutable().clear();
  b.setInsertionPointAfter(load);
  if (isRowTile(load.getType()))
    other = SplatOp::create(b, loc, load.getType(), other);
  auto value = arith::SelectOp::create(b, loc, predicate, load, other);
  load.getResult().replaceAllUsesExcept(value, value);
}

/// Guards a store of a state. Splits the store in two if the payload and the
/// lse need different checks.
static void guard(StoreStateOp store, const OpChecks &checks) {
  OpBuilder b(store);
  Location loc = store.getLoc();
  Value predicate = store.getPredicate();
  if (!store.getOut() || !store.getLse() ||
      llvm::equal(checks.rows, checks.elements)) {
    store.getPredicateMutable().assign(narrow(b, loc, predicate, checks.all()));
    return;
  }
  Value row = narrow(b, loc, predicate, checks.rows),
        element = narrow(b, loc, predicate, checks.elements);
  StoreStateOp::create(b, loc, store.getState(), store.getOut(),
                       store.getOutIndices(), Value(), ValueRange(), row,
                       store.getScale());
  StoreStateOp::create(b, loc, store.getState(), Value(), ValueRange(),
                       store.getLse(), store.getLseIndices(), element, Value());
  store.erase();
}

/// Erases print ops, and the promises that launches do not check. The proofs
/// have used the promises already, and only replays execute print ops. Returns
/// true if it erased any op.
static bool eraseNotes(KernelOp kernel) {
  SmallVector<Operation *> notes;
  kernel.walk([&](Operation *op) {
    if (isa<DistinctOp, PrintOp>(op) ||
        (isa<AssumeOp>(op) && !isLaunchCheck(cast<AssumeOp>(op))))
      notes.push_back(op);
  });
  for (Operation *op : notes)
    op->erase();
  return !notes.empty();
}

void GuardBoundsPass::runOnOperation() {
  // Collect all checks first, because several of them may belong to one op and
  // guard() may replace that op.
  llvm::MapVector<Operation *, OpChecks> open;
  for (const OpenIndex &index : getAnalysis<KernelProofs>().getOpenIndices()) {
    const MemoryAccess &access = index.access;
    OpChecks &checks = open[access.op];
    FailureOr<Check> check = getCheck(index);
    if (failed(check))
      return signalPassFailure();
    (access.isRow ? checks.rows : checks.elements).insert(*check);
  }
  if (!eraseNotes(getOperation()) && open.empty())
    return markAllAnalysesPreserved();
  for (auto &entry : open) {
    Operation *op = entry.first;
    const OpChecks &checks = entry.second;
    LDBG() << *op << ": " << checks.all().size() << " checks of indices";
    OpBuilder b(op);
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](LoadOp load) { guard(load, checks.all()); })
        .Case([&](StoreStateOp store) { guard(store, checks); })
        .Case<LoadIntoOp, LoadStateOp, StoreOp>([&](auto access) {
          access.getPredicateMutable().assign(
              narrow(b, access.getLoc(), access.getPredicate(), checks.all()));
        });
  }
}
