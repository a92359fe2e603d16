//===- PlanKernel.cpp - code versions and their plans ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Guards.h"
#include "dialect/KnownNumbers.h"
#include "lib/Analysis/Proofs.h"
#include "lib/Analysis/Signature.h"
#include "lib/Plan/BoundedRows.h"
#include "lib/Plan/ExplainLayout.h"
#include "lib/Plan/GivenPlan.h"
#include "lib/Plan/Passes.h"
#include "lib/Plan/PlanGrid.h"
#include "lib/Plan/PlanRows.h"
#include "lib/Plan/RowLoops.h"
#include "lib/Transforms/Layout/LaneConflicts.h"
#include "lib/Transforms/Layout/LongRows.h"
#include "lib/Transforms/Remarks.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/DebugLog.h"

#include <map>

#define DEBUG_TYPE "mlafix-plan-kernel"

namespace mlafix {
#define GEN_PASS_DEF_PLANKERNELPASS
#include "lib/Plan/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

//===----------------------------------------------------------------------===//
// Code versions
//===----------------------------------------------------------------------===//

/// Returns the type of a dense tensor with the shape of `type`: contiguous
/// rows, and static strides where the sizes determine them. Dims outside of one
/// with unknown size keep dynamic strides. With `isMany`, the first dim, which
/// counts tensors, keeps its stride as well. Returns null if `type` is already
/// dense.
static MemRefType getDenseType(MemRefType type, bool isMany) {
  SmallVector<int64_t> strides = type.getStridesAndOffset().first;
  int64_t stride = 1;
  for (int64_t dim = type.getRank() - 1; dim >= isMany; --dim) {
    strides[dim] = stride;
    if (type.isDynamicDim(dim))
      break;
    stride *= type.getDimSize(dim);
    if (dim + 1 == type.getRank() && sharesByte(type.getElementType()))
      stride /= 2; // strides are in bytes from here on
  }
  auto dense = MemRefType::get(
      type.getShape(), type.getElementType(),
      StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides),
      type.getMemorySpace());
  return dense == type ? MemRefType() : dense;
}

/// Folds the branches and predicates that the guards of `version` decide.
static void foldBranches(KernelOp version) {
  RewritePatternSet patterns(version.getContext());
  scf::IfOp::getCanonicalizationPatterns(patterns, version.getContext());
  LoadOp::getCanonicalizationPatterns(patterns, version.getContext());
  (void)applyPatternsGreedily(version, std::move(patterns));
}

/// Adds guards that arguments which may alias (N11) are distinct tensors. Folds
/// comparisons of these arguments to false.
static void makeDistinct(KernelOp version, ArrayAttr aliases) {
  SmallVector<Attribute> guards(version.getGuardsAttr().getValue());
  for (auto pair : aliases.getAsRange<ArrayAttr>())
    guards.push_back(GuardAttr::get(version.getContext(), GuardKind::Distinct,
                                    {cast<IntegerAttr>(pair[0]).getInt(),
                                     cast<IntegerAttr>(pair[1]).getInt()}));
  version.setGuardsAttr(ArrayAttr::get(version.getContext(), guards));
  version.walk([&](SameTensorOp same) {
    if (!areGuardedDistinct(version.getGuardsAttr(),
                            getKernelArgument(same.getLhs()).getArgNumber(),
                            getKernelArgument(same.getRhs()).getArgNumber()))
      return;
    OpBuilder builder(same);
    same.replaceAllUsesWith(
        arith::ConstantIntOp::create(builder, same.getLoc(), false, 1)
            .getResult());
  });
  if (!aliases.empty())
    foldBranches(version);
}

/// Gives dense types to the tensors that `version` accesses as rows, and adds
/// guards that check their strides.
static void makeDense(KernelOp version, const RowShape &shape) {
  SmallVector<Attribute> guards(version.getGuardsAttr().getValue());
  SmallVector<Type> types(version.getArgumentTypes());
  for (auto [index, bits] : shape.elementBits) {
    auto type = cast<MemRefType>(types[index]);
    MemRefType dense = getDenseType(type, version.isArgMany(index));
    if (!dense)
      continue;
    SmallVector<int64_t> given = type.getStridesAndOffset().first,
                         wanted = dense.getStridesAndOffset().first;
    for (auto [dim, stride] : llvm::enumerate(given))
      if (stride != wanted[dim])
        guards.push_back(GuardAttr::get(version.getContext(), GuardKind::Stride,
                                        /*args=*/{static_cast<int64_t>(index)},
                                        dim, wanted[dim]));
    // A dim is packed if its stride is the next dim's size times the next dim's
    // stride. If that size is unknown, types cannot express this, so a guard
    // checks it instead.
    for (int64_t dim = version.isArgMany(index); dim + 1 < type.getRank();
         ++dim)
      if (ShapedType::isDynamic(wanted[dim]) &&
          getKnownSize(version, index, dim + 1).isOpenName() &&
          !ShapedType::isDynamic(wanted[dim + 1]))
        guards.push_back(GuardAttr::get(version.getContext(), GuardKind::Packed,
                                        /*args=*/{static_cast<int64_t>(index)},
                                        dim, wanted[dim + 1]));
    types[index] = dense;
    version.getArgument(index).setType(dense);
  }
  version.setGuardsAttr(ArrayAttr::get(version.getContext(), guards));
  version.setType(FunctionType::get(version.getContext(), types, {}));
}

/// Adds guards that tensors with the same dims have equal strides, so that one
/// offset serves all. Tensors that are accessed as rows are left out. Usually
/// the guards concern the lses of all states.
static void makeIdenticalStrides(KernelOp version, const RowShape &shape) {
  llvm::MapVector<Attribute, SmallVector<int64_t>> groups;
  for (unsigned i = 0; i < version.getNumArguments(); ++i) {
    auto type = dyn_cast<MemRefType>(version.getArgumentTypes()[i]);
    if (!type || version.isArgAbsent(i) || shape.elementBits.count(i) ||
        llvm::none_of(type.getStridesAndOffset().first, ShapedType::isDynamic))
      continue;
    // Dims without a name are unrelated, so skip tensors with such dims.
    auto dims = version.getArgAttrOfType<ArrayAttr>(i, kDimsAttr);
    if (dims &&
        llvm::none_of(dims.getAsRange<StringAttr>(),
                      [](StringAttr dim) { return dim.getValue().empty(); }))
      groups[dims].push_back(i);
  }
  SmallVector<Attribute> guards(version.getGuardsAttr().getValue());
  for (auto &[dims, group] : groups) {
    // The first tensor of this guard must not be omitted, so put optional
    // tensors last.
    std::stable_partition(group.begin(), group.end(),
                          [&](int64_t i) { return !version.isArgOptional(i); });
    if (group.size() > 1 && !version.isArgOptional(group.front()))
      guards.push_back(
          GuardAttr::get(version.getContext(), GuardKind::SameStrides, group));
  }
  version.setGuardsAttr(ArrayAttr::get(version.getContext(), guards));
}

/// Returns the most rows that a launch of this layout may have. 32 bits must
/// suffice to number all lanes, or all blocks if rows are in parts.
static int64_t getMostRows(LayoutAttr layout) {
  return INT32_MAX /
         (layout.isInParts() ? layout.getParts() : layout.getLanes());
}

/// Sets the number in the guard MaxRows of `version`, if there is such a guard.
static void limitRows(KernelOp version, int64_t most) {
  SmallVector<Attribute> guards;
  for (auto guard : version.getGuardsAttr().getAsRange<GuardAttr>())
    guards.push_back(
        guard.getKind() == GuardKind::MaxRows
            ? GuardAttr::get(version.getContext(), GuardKind::MaxRows, {}, most)
            : guard);
  version.setGuardsAttr(ArrayAttr::get(version.getContext(), guards));
}

/// Returns the guards that a code version with this layout needs. Ragged grids
/// have no guard on the number of rows: they count rows in 32 bits (cu_seqlens
/// is i32) and compute everything else in 64.
static SmallVector<Attribute> getGuards(MLIRContext *context,
                                        const MachineModel &machine,
                                        const RowShape &shape,
                                        LayoutAttr layout) {
  SmallVector<Attribute> guards;
  std::map<int64_t, SmallVector<int64_t>> byAlignment;
  for (auto [index, bits] : shape.elementBits)
    if (int64_t pack = layout.packFor(shape.argDims.at(index));
        pack > 1 && pack * bits > 8)
      byAlignment[std::min(pack * bits / 8, machine.accessBytes)].push_back(
          index);
  for (auto &[bytes, args] : byAlignment)
    guards.push_back(GuardAttr::get(context, GuardKind::Align, args, bytes));
  if (!shape.isRagged)
    guards.push_back(
        GuardAttr::get(context, GuardKind::MaxRows, {}, getMostRows(layout)));
  return guards;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

class PlanKernelPass : public mlafix::impl::PlanKernelPassBase<PlanKernelPass> {
public:
  using PlanKernelPassBase::PlanKernelPassBase;
  void runOnOperation() override;

private:
  LogicalResult plan(KernelOp kernel, const MachineModel &machine,
                     ArrayAttr aliases);
  LogicalResult planForBound(KernelOp kernel, const MachineModel &machine,
                             int64_t widest, ArrayAttr aliases,
                             bool onlyWhole = false);
  LogicalResult planForShorter(KernelOp kernel, const MachineModel &machine,
                               const RowShape &shape, int64_t widest,
                               ArrayAttr aliases);
  FailureOr<GivenPlan> readGiven(KernelOp kernel);
  LogicalResult finishPlans(StringRef kernel,
                            MutableArrayRef<KernelOp> versions,
                            const MachineModel &machine, const GivenPlan &given,
                            ArrayAttr aliases);
  LogicalResult keepCodeVersion(StringRef kernel, ArrayRef<KernelOp> versions);
};
} // namespace

/// True if the result `merged` of a merge loop is needed before the merge loop
/// `last`, except as the initial value of another merge loop. If it is needed,
/// groups cannot share the loops, because only the first group of a row has
/// this result. `seen` holds the ops already visited.
static bool isNeededByGroups(Value merged, MergeLoopOp last,
                             llvm::SmallPtrSetImpl<Operation *> &seen) {
  return llvm::any_of(merged.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    Operation *op = last->getBlock()->findAncestorOpInBlock(*user);
    if (last->isBeforeInBlock(op))
      return false;
    if (auto loop = dyn_cast<MergeLoopOp>(user))
      return use.getOperandNumber() < loop.getInit().getBeginOperandIndex();
    if (!seen.insert(user).second)
      return false;
    return op != user || op->getNumRegions() || !isPure(op) ||
           llvm::any_of(op->getResults(), [&](Value result) {
             return isNeededByGroups(result, last, seen);
           });
  });
}

/// True if groups of lanes can share the kernel's merge loops. The loops must
/// be at the top level of a dense grid's body, with no store before them. Lanes
/// must not synchronise elsewhere.
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
  if (walk.wasInterrupted())
    return false;
  SmallVector<MergeLoopOp> loops(forall.getOps<MergeLoopOp>());
  llvm::SmallPtrSet<Operation *, 16> seen;
  return llvm::none_of(ArrayRef(loops).drop_back(), [&](MergeLoopOp loop) {
    return !loop.isOfNumbers() &&
           llvm::any_of(loop.getResults(), [&](Value merged) {
             return isNeededByGroups(merged, loops.back(), seen);
           });
  });
}

/// Returns the number of merge loops that merge states.
static int64_t countMergeLoops(KernelOp kernel) {
  int64_t count = 0;
  kernel.walk([&](MergeLoopOp loop) { count += !loop.isOfNumbers(); });
  return count;
}

/// True if a launch may pass the same tensor for a written argument and for a
/// read one. Updated arguments (read and written) do not count: every call is
/// in place for them. Passing an updated tensor also as a read argument
/// (merging a state with itself) is legal, but needs no code version.
static bool hasCallsInPlace(KernelOp kernel, ArrayAttr aliases) {
  return llvm::any_of(aliases.getAsRange<ArrayAttr>(), [&](ArrayAttr pair) {
    return kernel.getArgAccess(cast<IntegerAttr>(pair[0]).getInt()) == "write";
  });
}

/// True if the packs of a row are independent, so that its parts may go to
/// blocks that do not wait for each other.
static bool areIndependent(KernelOp kernel, const RowShape &shape,
                           ArrayAttr aliases) {
  return isa<ForallOp>(kernel.getGrid()) && !shape.dims.empty() &&
         !shape.reduces() && !shape.staysInBlock && !shape.exchanges &&
         !lanesSynchronise(kernel, aliases);
}

/// Chooses the plan of a code version with packs of `pack` elements.
/// `lanesSynchronise` says that the lanes of a row may have to wait for each
/// other.
static PlanAttr choosePlan(KernelOp version, const MachineModel &machine,
                           const RowShape &shape, int64_t pack,
                           ArrayAttr aliases, AliasMode aliasMode,
                           bool lanesSynchronise = true) {
  MLIRContext *context = version.getContext();
  if (canShareMerges(version, aliases))
    return getGroupedLayout(context, machine, shape, pack,
                            countMergeLoops(version));
  if (PlanAttr parts = chooseParts(context, machine, shape, pack);
      parts && areIndependent(version, shape, aliases))
    return parts;
  return chooseLayout(context, machine, shape, pack, aliasMode,
                      lanesSynchronise);
}

/// Returns the number of elements in the target's widest access.
static int64_t getWidestPack(const MachineModel &machine,
                             const RowShape &shape) {
  return 8 * machine.accessBytes / shape.packedBits(machine.narrowPercent);
}

/// Gives `dense` fewer lanes if these should share the loops of a row
/// (getSharedLayout). Few rows then have a version with the lanes as before,
/// `dense_few`: more lanes occupy more multiprocessors.
static void shareLoops(KernelOp dense, const MachineModel &machine) {
  PlanAttr plan = dense.getPlanAttr();
  LayoutAttr shared = getSharedLayout(dense, machine);
  if (!shared)
    return;
  dense.setPlanAttr(plan.with(shared));
  // In loops, the two packs would be in local memory.
  if (chooseRowLoops(dense, machine)) {
    dense.setPlanAttr(plan);
    return;
  }
  KernelOp few = cloneCodeVersion(dense, "few", plan, {});
  limitRows(few, machine.fewThreads / plan.getLayout().getLanes());
  limitRows(dense, getMostRows(shared));
}

/// Plans the versions for dense rows, with the widest accesses:
///
///   - `dense` is for calls out of place, unless outputs are also inputs.
///   - `dense_few` exists if lanes of `dense` share the loops of a row. It is
///     for few rows.
///   - `place` exists if outputs may alias inputs. It is for calls in place.
static void planDense(KernelOp kernel, const MachineModel &machine,
                      const RowShape &shape, ArrayAttr aliases) {
  MLIRContext *context = kernel.getContext();
  int64_t pack = choosePack(shape, getWidestPack(machine, shape));
  auto add = [&](StringRef suffix, AliasMode aliasMode) {
    // The layout is provisional: the final one depends on what folding leaves.
    KernelOp dense = cloneCodeVersion(
        kernel, suffix, chooseLayout(context, machine, shape, pack, aliasMode),
        {});
    if (aliasMode == AliasMode::OutOfPlace)
      makeDistinct(dense, aliases);
    // All versions of a kernel with an exchange have the same lanes, so the
    // answer must not depend on the version.
    bool meet = lanesSynchronise(kernel.getExchange() ? kernel : dense);
    PlanAttr plan =
        choosePlan(dense, machine, shape, pack, aliases, aliasMode, meet);
    SmallVector<Attribute> guards =
        getGuards(context, machine, shape, plan.getLayout());
    llvm::append_range(guards, dense.getGuardsAttr());
    dense.setPlanAttr(plan);
    dense.setGuardsAttr(ArrayAttr::get(context, guards));
    makeDense(dense, shape);
    makeIdenticalStrides(dense, shape);
    return dense;
  };
  KernelOp dense = add("dense", shape.aliasMode());
  if (!kernel.isCollective() && !shape.isRagged)
    shareLoops(dense, machine);
  if (hasCallsInPlace(kernel, aliases))
    add("place", AliasMode::InPlace);
}

/// Plans the version for rows with any strides.
static void planFast(KernelOp kernel, const MachineModel &machine,
                     const RowShape &shape, ArrayAttr aliases) {
  MLIRContext *context = kernel.getContext();
  int64_t pack = choosePack(shape, 8 * machine.stridedAccessBytes /
                                       shape.packedBits(machine.narrowPercent));
  PlanAttr plan =
      choosePlan(kernel, machine, shape, pack, aliases, shape.aliasMode());
  SmallVector<Attribute> guards =
      getGuards(context, machine, shape, plan.getLayout());
  if (!guards.empty() || kernel.getGuardsAttr())
    cloneCodeVersion(kernel, "fast", plan, guards);
}

/// Returns the most elements that a CPU processes at once. This number shrinks
/// if many rows are read into longer ones: each element is then a branch, and
/// LLVM's time grows with the square of their number.
static int64_t getWidestPackOfCPU(KernelOp kernel,
                                  const MachineModel &machine) {
  constexpr int64_t kMostElements = 512, kLeastPack = 4;
  int64_t pack = machine.packFloats, count = 0;
  kernel.walk([&](LoadIntoOp load) { count += !readsPacks(load, pack); });
  while (count * pack > kMostElements && pack > kLeastPack)
    pack /= 2;
  return pack;
}

/// Plans the versions for a CPU. `streamed` is for calls that exceed the
/// caches. It uses streaming stores, which need packs of streamedBytes and
/// outputs that are not inputs. `apart` is for calls out of place, and computes
/// the scalars of several rows at once. `any` is for all other calls.
static void planCPU(KernelOp kernel, const MachineModel &machine,
                    const RowShape &shape, ArrayAttr aliases) {
  MLIRContext *context = kernel.getContext();
  int64_t pack = choosePack(shape, getWidestPackOfCPU(kernel, machine));
  auto planOf = [&](int64_t rows) {
    return PlanAttr::get(LayoutAttr::get(context, 1, countPacks(shape, pack),
                                         pack, rows, /*groups=*/1));
  };
  StringRef reason; // why the scalars of several rows are not batched
  auto addCodeVersion = [&](StringRef suffix, ArrayRef<Attribute> guards) {
    KernelOp version = cloneCodeVersion(kernel, suffix, planOf(1), guards);
    makeDistinct(version, aliases);
    if (canBatchScalars(version, machine, aliases, reason))
      version.setPlanAttr(planOf(machine.batchRows));
    return version;
  };
  SmallVector<int64_t> stored = shape.outputs();
  // The guard BeyondCache counts the bytes of `moved`. Loaded tensors are among
  // these, since they occupy the caches as outputs do. Updated tensors are not,
  // since they stay in the caches.
  SmallVector<int64_t> moved;
  for (auto [arg, bits] : shape.elementBits)
    if (!shape.loaded.contains(arg) || !shape.stored.contains(arg))
      moved.push_back(arg);
  bool isWide = machine.streamedBytes > 0 && !stored.empty() &&
                llvm::all_of(stored, [&](int64_t arg) {
                  return shape.argDims.at(arg).getPack(pack) *
                             shape.elementBits.at(arg) %
                             (8 * machine.streamedBytes) ==
                         0;
                });
  if (isWide)
    addCodeVersion("streamed",
                   {GuardAttr::get(context, GuardKind::Align, stored,
                                   machine.streamedBytes),
                    GuardAttr::get(context, GuardKind::BeyondCache, moved)});
  // Without aliases, all calls are out of place, so this version serves all of
  // them and is called `any`. With aliases, it is called `apart`. It is erased
  // below if batching gains nothing, since `any` then serves all calls as well.
  KernelOp apart = addCodeVersion(aliases.empty() ? "any" : "apart", {});
  if (!reason.empty())
    remark::missed(kernel.getLoc(),
                   nameRemark("batch-rows", DEBUG_TYPE, kernel))
        << remark::add("the scalars of each row are computed for itself: {0}",
                       reason);
  if (!aliases.empty() && !reason.empty())
    apart.erase();
  if (!aliases.empty())
    cloneCodeVersion(kernel, "any", planOf(1), {});
}

LogicalResult PlanKernelPass::plan(KernelOp kernel, const MachineModel &machine,
                                   ArrayAttr aliases) {
  FailureOr<RowShape> shape = RowShape::of(kernel, machine);
  if (failed(shape))
    return failure();
  int64_t widest = isGPU(target) ? getWidestPack(machine, *shape)
                                 : getWidestPackOfCPU(kernel, machine);
  if (failed(planForShorter(kernel, machine, *shape, widest, aliases)) ||
      failed(planForBound(kernel, machine, widest, aliases)))
    return failure();
  if (!isGPU(target))
    return success();
  cloneCodeVersion(kernel, "any",
                   chooseLayout(&getContext(), machine, *shape,
                                shape->leastPack(), AliasMode::OutOfPlace),
                   {});
  return success();
}

/// Plans versions for rows that are shorter than the kernel's bounds.
LogicalResult PlanKernelPass::planForShorter(KernelOp kernel,
                                             const MachineModel &machine,
                                             const RowShape &shape,
                                             int64_t widest,
                                             ArrayAttr aliases) {
  auto planFor = [&](ArrayRef<int64_t> bounds, bool onlyWhole) {
    for (int64_t most : bounds) {
      KernelOp shorter = cloneForBound(kernel, shape, most);
      if (failed(planForBound(shorter, machine, widest, aliases, onlyWhole)))
        return failure();
      shorter.erase();
    }
    return success();
  };
  if (failed(planFor(
          getSmallerBounds(kernel, machine, shape, widest, isGPU(target)),
          /*onlyWhole=*/false)))
    return failure();
  return isGPU(target)
             ? planFor(getClusterBounds(kernel, machine, shape, widest),
                       /*onlyWhole=*/true)
             : success();
}

/// Plans the versions for rows up to the kernel's bounds, on a GPU all but
/// `any`. With `onlyWhole`, plans only versions whose bounded rows consist of
/// whole packs.
LogicalResult PlanKernelPass::planForBound(KernelOp kernel,
                                           const MachineModel &machine,
                                           int64_t widest, ArrayAttr aliases,
                                           bool onlyWhole) {
  FailureOr<RowShape> shape = RowShape::of(kernel, machine);
  if (failed(shape))
    return failure();
  // All ranks of a group must launch the same geometry, but their sizes may
  // differ. So the sizes must not select the code version.
  KernelOp whole = kernel.getExchange()
                       ? KernelOp()
                       : cloneForWholePacks(kernel, *shape, widest);
  bool hasWhole = bool(whole);
  if (hasWhole) {
    FailureOr<RowShape> ofWhole = RowShape::of(whole, machine);
    if (failed(ofWhole))
      return failure();
    if (isGPU(target))
      planDense(whole, machine, *ofWhole, aliases);
    else
      planCPU(whole, machine, *ofWhole, aliases);
    whole.erase();
  }
  if (onlyWhole)
    return success();
  if (!isGPU(target)) {
    planCPU(kernel, machine, *shape, aliases);
    return success();
  }
  // A version for dense rows gains nothing if its packs are single elements.
  bool isOfElements =
      hasWhole && choosePack(*shape, getWidestPack(machine, *shape)) == 1;
  if (!shape->elementBits.empty() && !isOfElements)
    planDense(kernel, machine, *shape, aliases);
  planFast(kernel, machine, *shape, aliases);
  return success();
}

/// Gives all versions of a kernel with an exchange the rows and lanes of the
/// first version, which has the widest packs. Each rank selects its version by
/// its own strides and addresses, but the same block of every rank must have
/// the same rows.
static void alignGeometry(MutableArrayRef<KernelOp> versions,
                          const RowShape &shape) {
  LayoutAttr first = versions.front().getLayoutAttr();
  for (KernelOp version : versions.drop_front()) {
    int64_t pack = version.getLayoutAttr().getPack();
    int64_t packs = llvm::divideCeil(countPacks(shape, pack), first.getLanes());
    version.setPlanAttr(version.getPlanAttr().with(
        LayoutAttr::get(version.getContext(), first.getLanes(), packs, pack,
                        first.getRows(), /*groups=*/1)));
  }
}

/// Erases every code version of `kernel` except the requested one.
LogicalResult PlanKernelPass::keepCodeVersion(StringRef kernel,
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

/// Applies the lanes, rows and parts that `given` prescribes for this code
/// version. `name` is the version's name without the kernel's. Adapts the guard
/// MaxRows to the new layout.
static LogicalResult adaptLayout(KernelOp version, StringRef name,
                                 const MachineModel &machine,
                                 const GivenPlan &given, ArrayAttr aliases) {
  PlanAttr plan = version.getPlanAttr();
  FailureOr<RowShape> shape = RowShape::of(version, machine);
  if (failed(shape))
    return failure();
  LayoutAttr layout = plan.getLayout();
  FailureOr<LayoutAttr> adapted =
      given.adapt(version, name, layout, countPacks(*shape, layout.getPack()));
  if (failed(adapted))
    return failure();
  if (adapted->isInParts() && !areIndependent(version, *shape, aliases))
    return version.emitError()
           << "expected 'parts' to be 1 unless the packs of a row are "
              "independent (no reduction, scan, swap or wait), got "
           << adapted->getParts();
  version.setPlanAttr(plan.with(*adapted));
  // Keep the bound of a version for few rows.
  if (getRowBound(version.getGuardsAttr()) == getMostRows(layout))
    limitRows(version, getMostRows(*adapted));
  return success();
}

/// Sets the plan fields that follow from the layout of a GPU code version, then
/// those that `given` prescribes.
static LogicalResult finishPlan(KernelOp version, StringRef name,
                                const MachineModel &machine,
                                const GivenPlan &given, ArrayAttr aliases) {
  if (!given.isEmpty() &&
      failed(adaptLayout(version, name, machine, given, aliases)))
    return failure();
  FailureOr<PlanAttr> plan = planGrid(
      version, machine, [&](auto numbers) { given.set(name, numbers); });
  if (failed(plan))
    return failure();
  version.setPlanAttr(*plan);
  return success();
}

/// Completes the plans of all code versions of `kernel`. Emits remarks about
/// each version.
LogicalResult PlanKernelPass::finishPlans(StringRef kernel,
                                          MutableArrayRef<KernelOp> versions,
                                          const MachineModel &machine,
                                          const GivenPlan &given,
                                          ArrayAttr aliases) {
  auto names = llvm::map_to_vector(versions, [&](KernelOp version) {
    return version.getSymName().drop_front(kernel.size() + 1);
  });
  if (std::optional<StringRef> unknown = given.findUnknown(names))
    return versions.front().emitError()
           << "expected a plan for one of the code versions of '" << kernel
           << "' (" << llvm::join(names, ", ") << "), got '" << *unknown << "'";
  if (isGPU(target) && versions.front().getExchange()) {
    FailureOr<RowShape> shape = RowShape::of(versions.back(), machine);
    if (failed(shape))
      return failure();
    alignGeometry(versions, *shape);
  }
  for (auto [version, name] : llvm::zip_equal(versions, names)) {
    if (!isGPU(target))
      version.setPlanAttr(planRows(version, machine));
    else if (failed(finishPlan(version, name, machine, given, aliases)))
      return failure();
    LDBG() << version.getSymName() << ": " << version.getPlanAttr();
    explainLayout(version, machine);
  }
  return success();
}

/// Reads the given fields from the pass's option and from the attribute of
/// `kernel`, and removes the attribute. Fields from the attribute apply only to
/// GPUs. They are parsed for a CPU as well, so that an invalid field is an
/// error for every target.
FailureOr<GivenPlan> PlanKernelPass::readGiven(KernelOp kernel) {
  std::vector<std::string> texts(fields.begin(), fields.end());
  if (!texts.empty() && !isGPU(target))
    return kernel.emitError()
           << "expected no fields of a plan for a target that is not a GPU, "
              "got some for "
           << target;
  if (auto own =
          dyn_cast_if_present<ArrayAttr>(kernel->removeAttr(kGivenPlanAttr)))
    for (auto text : own.getAsRange<StringAttr>())
      texts.push_back(text.str());
  llvm::Expected<GivenPlan> given = GivenPlan::parse(texts);
  if (!given)
    return kernel.emitError() << toString(given.takeError());
  return isGPU(target) ? *given : GivenPlan();
}

void PlanKernelPass::runOnOperation() {
  ModuleOp module = getOperation();
  if (target.empty()) {
    module.emitError() << "expected a target to plan kernels for, got none";
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
    if (!kernel.getGrid()) {
      kernel.emitError() << "expected a kernel with a grid to plan for, got a "
                            "thread's program";
      return signalPassFailure();
    }
    // Code versions are inserted before their kernel, so once the kernel is
    // erased, all ops between `before` and `after` are its versions.
    Operation *before = kernel->getPrevNode(), *after = kernel->getNextNode();
    FailureOr<GivenPlan> given = readGiven(kernel);
    if (failed(given))
      return signalPassFailure();
    for (AssumeOp check : kernel.getBody().getOps<AssumeOp>())
      if (failed(check.verify())) // folding may have made it invalid
        return signalPassFailure();
    DictionaryAttr signature = getSignature(kernel);
    for (AssumeOp check :
         llvm::make_early_inc_range(kernel.getBody().getOps<AssumeOp>()))
      check.erase();                 // the check is now in the unit's signature
    kernel->removeAttr(kProofsAttr); // so that code versions do not copy it
    if (kernels.size() == 1)
      module->setAttr(kSignatureAttr, signature);
    auto aliases = signature.getAs<ArrayAttr>("aliases");
    if (failed(plan(kernel, *model, aliases)))
      return signalPassFailure();
    std::string name = kernel.getSymName().str();
    kernel.erase();
    SmallVector<KernelOp> versions;
    for (Operation *op = before ? before->getNextNode()
                                : &module.getBody()->front();
         op != after; op = op->getNextNode())
      versions.push_back(cast<KernelOp>(op));
    if (failed(finishPlans(name, versions, *model, *given, aliases)) ||
        (!variant.empty() && failed(keepCodeVersion(name, versions))))
      return signalPassFailure();
  }
}
