//===- PlanLayout.cpp - variants, guards and layouts -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Target.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

#include <map>

namespace mlafix {
#define GEN_PASS_DEF_PLANLAYOUTPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

namespace {

constexpr int64_t kWarp = 32;
constexpr int64_t kBlock = 128; // threads of a block of a dense grid
constexpr int64_t kRaggedBlock =
    256; // threads of a block that scans a predicate
constexpr int64_t kAnyAccessBytes = 16; // the widest access that all GPUs have
constexpr int64_t kMaxPacks =
    4; // packs a lane holds before a row is spread over more warps
constexpr int64_t kCpuPack = 16; // floats a CPU lane works on at once

/// What a layout depends on.
struct RowShape {
  llvm::SmallSetVector<int64_t, 4> sizes; // of the row tiles
  std::map<int64_t, int64_t>
      elementBytes; // of the arguments moved as rows, by index
  bool isRagged = false;

  int64_t widest() const {
    int64_t bytes = 1;
    for (auto [index, size] : elementBytes)
      bytes = std::max(bytes, size);
    return bytes;
  }
};

class PlanLayoutPass : public mlafix::impl::PlanLayoutPassBase<PlanLayoutPass> {
public:
  using PlanLayoutPassBase::PlanLayoutPassBase;
  void runOnOperation() override;

private:
  LogicalResult plan(KernelOp kernel);
};
} // namespace

static FailureOr<RowShape> getRowShape(KernelOp kernel) {
  RowShape shape;
  WalkResult walk = kernel.walk([&](Operation *op) {
    if (isa<RaggedForallOp>(op))
      shape.isRagged = true;
    for (Type type : llvm::concat<const Type>(op->getOperandTypes(),
                                              op->getResultTypes())) {
      if (!isRowTile(type))
        continue;
      if (!getTileDim(type).isBound()) {
        op->emitError()
            << "expected dim " << getTileDim(type).str()
            << " to be bound to a size before layouts are planned, got a name";
        return WalkResult::interrupt();
      }
      shape.sizes.insert(getTileDim(type).getSize());
    }
    Value memref;
    if (auto load = dyn_cast<LoadOp>(op); load && isRowTile(load.getType()))
      memref = load.getSource();
    if (auto store = dyn_cast<StoreOp>(op);
        store && isRowTile(store.getValue().getType()))
      memref = store.getTarget();
    if (memref)
      shape.elementBytes[getKernelArgument(memref).getArgNumber()] =
          getDTypeBytes(cast<MemRefType>(memref.getType()).getElementType());
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  return shape;
}

/// The largest power of two, at most `limit`, that divides every tile's size: a
/// pack never straddles a row's end.
static int64_t choosePack(const RowShape &shape, int64_t limit) {
  int64_t pack = shape.sizes.empty() ? 1 : limit;
  for (int64_t size : shape.sizes)
    while (size % pack != 0)
      pack /= 2;
  return pack;
}

/// Shares a row of `size` elements out over lanes. A row stays within one warp
/// while that takes at most kMaxPacks packs a lane; then the split that leaves
/// the fewest lanes idle wins, and of equals the one with the fewest packs. A
/// lane group never moves less than a 32-byte sector at once.
static LayoutAttr chooseLayout(MLIRContext *context, const RowShape &shape,
                               int64_t pack) {
  int64_t size = shape.sizes.empty() ? 1 : *llvm::max_element(shape.sizes);
  int64_t needed = llvm::divideCeil(size, pack);
  int64_t sector = std::max<int64_t>(1, 32 / (pack * shape.widest()));
  int64_t lanes = 0, packs = 0, slots = 0;
  for (int64_t p = 1; p <= kMaxPacks; ++p) {
    int64_t l = llvm::PowerOf2Ceil(llvm::divideCeil(needed, p));
    if (l > kWarp || (p > 1 && l < sector))
      continue;
    if (!slots || l * p < slots) {
      lanes = l;
      packs = p;
      slots = l * p;
    }
  }
  if (!slots) { // wider than a warp
    lanes = std::min<int64_t>(1024,
                              llvm::PowerOf2Ceil(llvm::divideCeil(needed, 2)));
    packs = llvm::divideCeil(needed, lanes);
  }
  int64_t threads = shape.isRagged ? kRaggedBlock : kBlock;
  int64_t rows = lanes > kWarp ? 1 : threads / lanes;
  return LayoutAttr::get(context, lanes, packs, pack, rows);
}

/// The type of a tensor whose rows follow each other without gaps, where its
/// sizes say how far apart they then are: all but the outermost are known. Null
/// if they do not, or if `type` says so already.
static MemRefType getDenseType(MemRefType type) {
  SmallVector<int64_t> strides(type.getRank(), 1);
  for (int64_t dim = type.getRank() - 2; dim >= 0; --dim) {
    if (type.isDynamicDim(dim + 1))
      return MemRefType();
    strides[dim] = strides[dim + 1] * type.getDimSize(dim + 1);
  }
  auto dense = MemRefType::get(
      type.getShape(), type.getElementType(),
      StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides),
      type.getMemorySpace());
  return dense == type ? MemRefType() : dense;
}

/// Gives the tensors that `variant` moves as rows their dense types, and adds
/// the guards that this takes. Answers whether there was one to give.
static bool makeDense(KernelOp variant, const RowShape &shape) {
  SmallVector<Attribute> guards(variant.getGuardsAttr().getValue());
  SmallVector<Type> types(variant.getArgumentTypes());
  bool changed = false;
  for (auto [index, bytes] : shape.elementBytes) {
    auto type = cast<MemRefType>(types[index]);
    MemRefType dense = getDenseType(type);
    if (!dense)
      continue;
    SmallVector<int64_t> given = type.getStridesAndOffset().first,
                         wanted = dense.getStridesAndOffset().first;
    for (auto [dim, stride] : llvm::enumerate(given))
      if (stride != wanted[dim])
        guards.push_back(
            makeStrideGuard(variant.getContext(), index, dim, wanted[dim]));
    types[index] = dense;
    variant.getArgument(index).setType(dense);
    changed = true;
  }
  variant.setGuardsAttr(ArrayAttr::get(variant.getContext(), guards));
  variant.setType(FunctionType::get(variant.getContext(), types, {}));
  return changed;
}

static KernelOp cloneVariant(KernelOp kernel, StringRef suffix,
                             LayoutAttr layout, ArrayRef<Attribute> guards) {
  OpBuilder b(kernel);
  auto clone = cast<KernelOp>(b.clone(*kernel));
  clone.setSymName((kernel.getSymName() + "_" + suffix).str());
  clone.setLayoutAttr(layout);
  clone.setGuardsAttr(b.getArrayAttr(guards));
  return clone;
}

/// The variant whose packs are as wide as `accessBytes`, with the guards that
/// this and 32-bit row numbers take; null if there is nothing to guard.
static KernelOp cloneAligned(KernelOp kernel, StringRef suffix,
                             const RowShape &shape, int64_t accessBytes) {
  MLIRContext *context = kernel.getContext();
  int64_t pack = choosePack(shape, accessBytes / shape.widest());
  LayoutAttr layout = chooseLayout(context, shape, pack);
  SmallVector<Attribute> guards;
  std::map<int64_t, SmallVector<int64_t>> byAlignment;
  for (auto [index, bytes] : shape.elementBytes)
    if (pack > 1)
      byAlignment[pack * bytes].push_back(index);
  for (auto &[bytes, args] : byAlignment)
    guards.push_back(makeAlignGuard(context, args, bytes));
  // A ragged grid counts its rows in 32 bits (cu_seqlens is i32) and computes
  // the rest in 64.
  if (!shape.isRagged)
    guards.push_back(makeMaxRowsGuard(context, INT32_MAX / layout.getLanes()));
  return guards.empty() ? KernelOp()
                        : cloneVariant(kernel, suffix, layout, guards);
}

LogicalResult PlanLayoutPass::plan(KernelOp kernel) {
  FailureOr<RowShape> shape = getRowShape(kernel);
  if (failed(shape))
    return failure();
  MLIRContext *context = &getContext();
  if (!isGPU(target)) {
    int64_t pack = choosePack(*shape, kCpuPack);
    int64_t size = shape->sizes.empty() ? 1 : *llvm::max_element(shape->sizes);
    cloneVariant(
        kernel, "any",
        LayoutAttr::get(context, 1, llvm::divideCeil(size, pack), pack, 1), {});
    return success();
  }

  // Rows that follow each other take the widest accesses. Others are often
  // slices that keep no more than 16 bytes.
  KernelOp dense =
      cloneAligned(kernel, "dense", *shape, getAccessBytes(target));
  if (dense && !makeDense(dense, *shape))
    dense.erase();
  cloneAligned(kernel, "fast", *shape, kAnyAccessBytes);
  cloneVariant(kernel, "any", chooseLayout(context, *shape, 1), {});
  return success();
}

void PlanLayoutPass::runOnOperation() {
  ModuleOp module = getOperation();
  if (target.empty()) {
    module.emitError() << "expected a target to plan layouts for, got none";
    return signalPassFailure();
  }
  module->setAttr(kTargetAttr, StringAttr::get(&getContext(), target));
  SmallVector<KernelOp> kernels = llvm::to_vector(module.getOps<KernelOp>());
  for (KernelOp kernel : kernels) {
    if (kernels.size() == 1)
      module->setAttr(kSignatureAttr, getSignature(kernel));
    if (failed(plan(kernel)))
      return signalPassFailure();
    kernel.erase();
  }
}
