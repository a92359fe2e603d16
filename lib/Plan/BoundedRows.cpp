//===- BoundedRows.cpp - code versions for shorter rows -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Plan/BoundedRows.h"
#include "lib/Transforms/AccessPredicate.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlafix;

using NewDims = SmallVector<std::pair<DimAttr, DimAttr>>;

/// Replaces the first dim of each pair by the second in all row types of
/// `kernel`.
static void replaceDims(KernelOp kernel, const NewDims &dims) {
  AttrTypeReplacer replacer;
  auto replaced = [&](Attribute dim) {
    const auto *found =
        llvm::find_if(dims, [&](auto &pair) { return pair.first == dim; });
    return found == dims.end() ? DimAttr() : found->second;
  };
  replacer.addReplacement([=](DimAttr dim) -> std::optional<Attribute> {
    DimAttr other = replaced(dim);
    return other ? std::optional<Attribute>(other) : std::nullopt;
  });
  replacer.addReplacement([=](RankedTensorType row) -> std::optional<Type> {
    DimAttr other = replaced(row.getEncoding());
    return other ? std::optional<Type>(
                       getRowTileType(other, row.getElementType()))
                 : std::nullopt;
  });
  // The replacer does not replace the type of a DenseElementsAttr, so replace
  // the attribute as a whole.
  replacer.addReplacement([&](DenseElementsAttr row) -> Attribute {
    auto type = cast<ShapedType>(replacer.replace(row.getType()));
    // A constant that is not a splat has a static size, so its dim is not
    // bounded.
    assert(row.isSplat() && "along a dim with a bound, constants are equal");
    return row.resizeSplat(type);
  });
  replacer.recursivelyReplaceElementsIn(kernel, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

static GuardAttr getSizeGuard(KernelOp kernel, GuardKind kind, DimAttr dim,
                              int64_t number) {
  auto [argument, position] = findSizeOf(kernel, dim);
  return GuardAttr::get(kernel.getContext(), kind, {argument.getArgNumber()},
                        position, number);
}

KernelOp mlafix::cloneForWholePacks(KernelOp kernel, const RowShape &shape,
                                    int64_t pack) {
  NewDims dims;
  SmallVector<Attribute> guards;
  for (DimAttr dim : shape.dims) {
    if (!dim.isBounded())
      continue;
    int64_t multiple = llvm::bit_floor<uint64_t>(std::min(pack, dim.getSize()));
    if (multiple == 1)
      continue;
    guards.push_back(getSizeGuard(kernel, GuardKind::Multiple, dim, multiple));
    dims.push_back({dim, DimAttr::getBounded(kernel.getContext(), dim.getName(),
                                             dim.getSize(), multiple)});
  }
  if (guards.empty())
    return {};
  KernelOp clone = cloneCodeVersion(kernel, "whole", PlanAttr(), guards);
  replaceDims(clone, dims);
  return clone;
}

/// True if the number of rows in the grid is known, as in a kernel that
/// computes a single row of offsets. Such a grid usually has few rows, so the
/// idle lanes of short rows cost nothing, and a code version for short rows
/// gains nothing.
static bool hasKnownRows(KernelOp kernel) {
  auto forall = dyn_cast<ForallOp>(kernel.getGrid());
  return forall && llvm::all_of(forall.getExtents(), [](Value extent) {
           return matchPattern(extent, m_Constant());
         });
}

/// Returns the least bound of rows that all accesses allow. Slices of bounded
/// rows must end within the bound. A row that is read into a longer, bounded
/// row must start within the bound.
static int64_t getLeastBound(KernelOp kernel) {
  int64_t least = 1;
  for (const MemoryAccess &access : collectAccesses(kernel)) {
    bool endsAtLaunch = ShapedType::isDynamic(
        cast<MemRefType>(access.memref.getType()).getShape().back());
    if (access.slice && endsAtLaunch)
      least = std::max(least, access.slice->end);
    if (auto load = dyn_cast<LoadIntoOp>(access.op);
        load && getTileDim(load.getType()).isBounded())
      least = std::max<int64_t>(least, load.getFirst());
  }
  return least;
}

/// Returns two numbers of packs: those of the longest bounded row (0 if there
/// is none), and those of the longest other row (at least 1).
static std::pair<int64_t, int64_t> countBoundedPacks(const RowShape &shape,
                                                     int64_t pack) {
  int64_t longest = 0, others = 1;
  for (DimAttr dim : shape.dims)
    if (dim.isBounded())
      longest =
          std::max<int64_t>(longest, llvm::divideCeil(dim.getSize(), pack));
    else
      others = std::max(others, dim.getPacks(pack));
  return {longest, others};
}

SmallVector<int64_t> mlafix::getSmallerBounds(KernelOp kernel,
                                              const MachineModel &machine,
                                              const RowShape &shape,
                                              int64_t pack, bool isGPU) {
  auto [longest, others] = countBoundedPacks(shape, pack);
  // All ranks of a group must launch the same geometry, but their sizes may
  // differ. So the sizes must not select the code version.
  if (longest == 0 || kernel.getExchange() || hasKnownRows(kernel))
    return {};
  int64_t least = getLeastBound(kernel);
  int64_t steps = isGPU ? machine.boundSteps : 1;
  int64_t packs = isGPU ? machine.boundPacks : machine.loopBoundPacks;
  SmallVector<int64_t> bounds;
  for (; steps > 0; --steps, packs *= machine.boundFactor) {
    if (2 * packs > static_cast<int64_t>(llvm::bit_ceil<uint64_t>(longest)))
      break;
    // A bound below the length of the longest other row gains nothing.
    if (packs < others || packs * pack < least)
      continue;
    bounds.push_back(packs * pack);
  }
  return bounds;
}

SmallVector<int64_t> mlafix::getClusterBounds(KernelOp kernel,
                                              const MachineModel &machine,
                                              const RowShape &shape,
                                              int64_t pack) {
  auto [longest, others] = countBoundedPacks(shape, pack);
  if (longest <= others || kernel.getExchange() || hasKnownRows(kernel))
    return {};
  int64_t least = std::max(getLeastBound(kernel), others * pack);
  int64_t longestRow = llvm::bit_ceil<uint64_t>(longest * pack);
  SmallVector<int64_t> bounds;
  int64_t held =
      getMostInBlock(kernel.getContext(), machine, shape, longest, pack);
  for (int64_t bound = held; bound && 2 * bound <= longestRow; bound *= 2)
    if (bound >= least)
      bounds.push_back(bound);
  return bounds;
}

KernelOp mlafix::cloneForBound(KernelOp kernel, const RowShape &shape,
                               int64_t most) {
  MLIRContext *context = kernel.getContext();
  NewDims dims;
  SmallVector<Attribute> guards;
  NamedAttrList bounds(kernel.getMostAttr());
  for (DimAttr dim : shape.dims) {
    if (!dim.isBounded() || dim.getSize() <= most)
      continue;
    guards.push_back(getSizeGuard(kernel, GuardKind::AtMost, dim, most));
    DimAttr shorter = DimAttr::getBounded(context, dim.getName(), most);
    dims.push_back({dim, shorter});
    bounds.set(dim.getName(), shorter.getMost());
  }
  std::string suffix = "most" + std::to_string(most);
  KernelOp clone = cloneCodeVersion(kernel, suffix, PlanAttr(), guards);
  clone.setMostAttr(bounds.getDictionary(context));
  replaceDims(clone, dims);
  return clone;
}
