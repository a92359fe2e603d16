//===- PlanLayout.cpp - code versions and their layouts -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Proofs.h"
#include "lib/Analysis/Signature.h"
#include "lib/Transforms/CodeVersions.h"
#include "lib/Transforms/EarlyOps.h"
#include "lib/Transforms/ExplainLayout.h"
#include "lib/Transforms/LaneConflicts.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Remarks.h"
#include "lib/Transforms/Target.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-plan-layout"

namespace mlafix {
#define GEN_PASS_DEF_PLANLAYOUTPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

namespace {

class PlanLayoutPass : public mlafix::impl::PlanLayoutPassBase<PlanLayoutPass> {
public:
  using PlanLayoutPassBase::PlanLayoutPassBase;
  void runOnOperation() override;

private:
  LogicalResult plan(KernelOp kernel, const MachineModel &machine,
                     ArrayAttr aliases);
  LogicalResult keepCodeVersion(StringRef kernel, ArrayRef<KernelOp> versions);
};
} // namespace

/// Whether groups of lanes can share the kernel's merge loops: these are at the
/// top of a dense grid's body, nothing is stored before them, and lanes
/// synchronise nowhere else.
static bool canShareMerges(KernelOp kernel, ArrayAttr aliases) {
  auto forall = dyn_cast_if_present<ForallOp>(kernel.getGrid());
  if (!forall || kernel.getExchange() || forall.getOps<MergeLoopOp>().empty() ||
      lanesSynchronise(kernel, aliases))
    return false;
  bool isAfterStore = false;
  WalkResult walk = forall.walk<WalkOrder::PreOrder>([&](Operation *op) {
    isAfterStore |= isa<StoreOp>(op);
    bool isLate =
        isa<MergeLoopOp>(op) && (isAfterStore || op->getParentOp() != forall);
    return isLate ? WalkResult::interrupt() : WalkResult::advance();
  });
  return !walk.wasInterrupted();
}

/// Whether a tensor that is written and not read may be one that is read. An
/// updated tensor is in place already; passing it a second time, as in a merge
/// of a state with itself, is legal, but needs no code version of its own.
static bool hasCallsInPlace(KernelOp kernel, ArrayAttr aliases) {
  return llvm::any_of(aliases.getAsRange<ArrayAttr>(), [&](ArrayAttr pair) {
    return kernel.getArgAccess(cast<IntegerAttr>(pair[0]).getInt()) == "write";
  });
}

/// The code versions for dense rows, with the widest accesses of the target:
/// one for calls out of place, and, if outputs may be inputs, one for calls in
/// place.
static void planDense(KernelOp kernel, const MachineModel &machine,
                      const RowShape &shape, ArrayAttr aliases) {
  MLIRContext *context = kernel.getContext();
  int64_t pack = choosePack(shape, machine.accessBytes / shape.packedBytes());
  auto add = [&](StringRef suffix, AliasMode aliasMode) {
    KernelOp dense = cloneCodeVersion(
        kernel, suffix, chooseLayout(context, machine, shape, pack, aliasMode),
        {});
    if (aliasMode == AliasMode::OutOfPlace)
      makeDistinct(dense, aliases);
    // All code versions of a kernel with an exchange have these lanes.
    bool meet = lanesSynchronise(kernel.getExchange() ? kernel : dense);
    LayoutAttr layout =
        canShareMerges(dense, aliases)
            ? getGroupedLayout(context, machine, shape, pack)
            : chooseLayout(context, machine, shape, pack, aliasMode, meet);
    SmallVector<Attribute> guards = getGuards(context, shape, layout);
    llvm::append_range(guards, dense.getGuardsAttr());
    dense.setLayoutAttr(layout);
    dense.setGuardsAttr(ArrayAttr::get(context, guards));
    makeDense(dense, shape);
    makeIdenticalStrides(dense, shape);
    explainLayout(dense, machine, shape, aliasMode);
  };
  add("dense", shape.aliasMode());
  if (hasCallsInPlace(kernel, aliases))
    add("place", AliasMode::InPlace);
}

/// The code version for any strides.
static void planFast(KernelOp kernel, const MachineModel &machine,
                     const RowShape &shape, ArrayAttr aliases) {
  MLIRContext *context = kernel.getContext();
  int64_t pack =
      choosePack(shape, machine.stridedAccessBytes / shape.packedBytes());
  LayoutAttr layout =
      canShareMerges(kernel, aliases)
          ? getGroupedLayout(context, machine, shape, pack)
          : chooseLayout(context, machine, shape, pack, shape.aliasMode());
  SmallVector<Attribute> guards = getGuards(context, shape, layout);
  if (!guards.empty())
    explainLayout(cloneCodeVersion(kernel, "fast", layout, guards), machine,
                  shape, shape.aliasMode());
}

/// A CPU has a code version for calls out of place, which computes the scalars
/// of several rows at once, and before it one for calls that move more than its
/// caches hold: its stores do not read what they replace, which takes packs of
/// streamedBytes and outputs that are no inputs.
static void planCPU(KernelOp kernel, const MachineModel &machine,
                    const RowShape &shape, ArrayAttr aliases) {
  MLIRContext *context = kernel.getContext();
  int64_t pack = choosePack(shape, machine.packFloats);
  auto layout = [&](int64_t rows) {
    return LayoutAttr::get(context, 1, countPacks(shape, pack), pack, rows,
                           /*groups=*/1);
  };
  StringRef reason; // why the scalars of several rows are not computed at once
  auto explain = [&](KernelOp version) {
    explainLayout(version, machine, shape, AliasMode::OutOfPlace);
  };
  auto addCodeVersion = [&](StringRef suffix, ArrayRef<Attribute> guards) {
    KernelOp version = cloneCodeVersion(kernel, suffix, layout(1), guards);
    makeDistinct(version, aliases);
    if (canBatchScalars(version, aliases, reason))
      version.setLayoutAttr(layout(machine.batchRows));
    return version;
  };
  SmallVector<int64_t> stored = shape.outputs();
  // What is read takes its share of the caches too; what is updated stays
  // there.
  SmallVector<int64_t> moved;
  for (auto [arg, bits] : shape.elementBits)
    if (!shape.loaded.contains(arg) || !shape.stored.contains(arg))
      moved.push_back(arg);
  bool isWide = !stored.empty() && llvm::all_of(stored, [&](int64_t arg) {
    return shape.argDims.at(arg).getPack(pack) * shape.elementBits.at(arg) %
               (8 * machine.streamedBytes) ==
           0;
  });
  if (isWide)
    explain(addCodeVersion(
        "streamed", {GuardAttr::get(context, GuardKind::Align, stored,
                                    machine.streamedBytes),
                     GuardAttr::get(context, GuardKind::BeyondCache, moved)}));
  // Where it gains nothing, one code version serves both. Without aliases, all
  // calls are out of place.
  KernelOp apart = addCodeVersion(aliases.empty() ? "any" : "apart", {});
  if (!reason.empty())
    remark::missed(kernel.getLoc(),
                   nameRemark("batch-rows", DEBUG_TYPE, kernel))
        << remark::add("the scalars of each row are computed for itself: {0}",
                       reason);
  if (!aliases.empty() && !reason.empty())
    apart.erase();
  else
    explain(apart);
  if (!aliases.empty())
    explain(cloneCodeVersion(kernel, "any", layout(1), {}));
}

LogicalResult PlanLayoutPass::plan(KernelOp kernel, const MachineModel &machine,
                                   ArrayAttr aliases) {
  FailureOr<RowShape> shape = RowShape::of(kernel);
  if (failed(shape))
    return failure();
  MLIRContext *context = &getContext();
  if (!isGPU(target)) {
    planCPU(kernel, machine, *shape, aliases);
    return success();
  }

  if (!shape->elementBits.empty())
    planDense(kernel, machine, *shape, aliases);
  planFast(kernel, machine, *shape, aliases);
  KernelOp any =
      cloneCodeVersion(kernel, "any",
                       chooseLayout(context, machine, *shape,
                                    shape->leastPack(), AliasMode::OutOfPlace),
                       {});
  explainLayout(any, machine, *shape, AliasMode::OutOfPlace);
  return success();
}

/// Gives the code versions of a kernel with an exchange one geometry: the same
/// block of each rank waits for it, and which version a rank takes depends on
/// its own strides and addresses. Rows and lanes are those of the first, whose
/// packs are the widest.
static void alignGeometry(MutableArrayRef<KernelOp> versions,
                          const RowShape &shape) {
  LayoutAttr first = versions.front().getLayoutAttr();
  for (KernelOp version : versions.drop_front()) {
    int64_t pack = version.getLayoutAttr().getPack();
    int64_t packs = llvm::divideCeil(countPacks(shape, pack), first.getLanes());
    version.setLayoutAttr(LayoutAttr::get(version.getContext(),
                                          first.getLanes(), packs, pack,
                                          first.getRows(), /*groups=*/1));
  }
}

/// Erases every code version of `kernel` except the one that is wanted.
LogicalResult PlanLayoutPass::keepCodeVersion(StringRef kernel,
                                              ArrayRef<KernelOp> versions) {
  SmallVector<KernelOp> others;
  SmallVector<StringRef> names;
  bool found = false;
  for (KernelOp op : versions) {
    StringRef name = op.getSymName().drop_front(kernel.size() + 1);
    names.push_back(name);
    found |= name == variant;
    if (name != variant)
      others.push_back(op);
  }
  if (!found)
    return getOperation().emitError()
           << "expected one of the code versions of '" << kernel << "' ("
           << llvm::join(names, ", ") << "), got '" << variant << "'";
  for (KernelOp other : others)
    other.erase();
  return success();
}

void PlanLayoutPass::runOnOperation() {
  ModuleOp module = getOperation();
  if (target.empty()) {
    module.emitError() << "expected a target to plan layouts for, got none";
    return signalPassFailure();
  }
  FailureOr<MachineModel> model = getMachine(module, target, machine);
  if (failed(model))
    return signalPassFailure();
  Builder b(&getContext());
  module->setAttr(kTargetAttr, b.getStringAttr(target));
  if (!machine.empty())
    module->setAttr(kMachineAttr,
                    b.getStrArrayAttr(llvm::to_vector_of<StringRef>(
                        ArrayRef<std::string>(machine))));
  SmallVector<KernelOp> kernels = llvm::to_vector(module.getOps<KernelOp>());
  for (KernelOp kernel : kernels) {
    // Code versions precede their kernel.
    Operation *before = kernel->getPrevNode(), *after = kernel->getNextNode();
    for (AssumeOp check : kernel.getBody().getOps<AssumeOp>())
      if (failed(check.verify())) // what folds made of it
        return signalPassFailure();
    DictionaryAttr signature = getSignature(kernel);
    for (AssumeOp check :
         llvm::make_early_inc_range(kernel.getBody().getOps<AssumeOp>()))
      check.erase();                 // the unit's, from here on
    kernel->removeAttr(kProofsAttr); // code versions are copies
    if (kernels.size() == 1)
      module->setAttr(kSignatureAttr, signature);
    if (failed(plan(kernel, *model, signature.getAs<ArrayAttr>("aliases"))))
      return signalPassFailure();
    std::string name = kernel.getSymName().str();
    kernel.erase();
    SmallVector<KernelOp> versions;
    for (Operation *op = before ? before->getNextNode()
                                : &module.getBody()->front();
         op != after; op = op->getNextNode())
      versions.push_back(cast<KernelOp>(op));
    if (isGPU(target) && versions.front().getExchange()) {
      FailureOr<RowShape> shape = RowShape::of(versions.back());
      if (failed(shape))
        return signalPassFailure();
      alignGeometry(versions, *shape);
    }
    for (KernelOp version : versions)
      LDBG() << version.getSymName() << ": " << version.getLayoutAttr();
    if (!variant.empty() && failed(keepCodeVersion(name, versions)))
      return signalPassFailure();
  }
}
