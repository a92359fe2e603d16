//===- PlanLayout.cpp - variants, guards and layouts -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Signature.h"
#include "lib/Transforms/CPU/EarlyOps.h"
#include "lib/Transforms/LaneConflicts.h"
#include "lib/Transforms/Passes.h"
#include "lib/Transforms/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
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
// Threads of a block of a dense grid: as many as move kBlockBytes at once. A
// multiprocessor starts a block every 0.16 us (H200), so blocks that move less
// bound the rate; larger ones end unevenly.
constexpr int64_t kMinBlock = 128, kMaxBlock = 256, kBlockBytes = 12288;
// In place: two packs a lane, so that fewer threads wait for an lse
// (docs/Rationale.md has what an H200 measures).
constexpr int64_t kInPlaceBlock = 128, kInPlacePacks = 2;
constexpr int64_t kInPlaceBytes =
    192; // that a lane may then have on the way: three rows of 32 a pack
constexpr int64_t kRaggedBlock =
    256; // threads of a block that scans a predicate
constexpr int64_t kAnyAccessBytes = 16; // the widest access that all GPUs have
constexpr int64_t kMaxPacks =
    4; // packs a lane holds before a row is spread over more warps
constexpr int64_t kCpuPack = 16;     // floats a CPU lane works on at once …
constexpr int64_t kWideCpuPack = 32; // … and with registers of 64 bytes
constexpr int64_t kCpuBatch =
    16; // rows whose scalars a CPU computes at once: a cache line of f32

/// What is known of where a variant writes.
enum class Place { Apart, InPlace };

/// What a layout depends on.
struct RowShape {
  llvm::SmallSetVector<int64_t, 4> sizes; // of the row tiles
  std::map<int64_t, int64_t>
      elementBytes; // of the arguments moved as rows, by index
  std::map<int64_t, int64_t> lengths;              // of their rows, in elements
  llvm::SmallSetVector<int64_t, 4> loaded, stored; // of these, the indices
  bool isRagged = false;
  int64_t moves = 0; // of rows, at once

  /// What is known of where every variant writes.
  Place place() const {
    bool isUpdate = llvm::any_of(
        stored, [&](int64_t index) { return loaded.contains(index); });
    return isUpdate ? Place::InPlace : Place::Apart;
  }
  /// The arguments that rows are stored to and none loaded from: what has been
  /// read is in the caches already.
  SmallVector<int64_t> outputs() const {
    return llvm::to_vector(llvm::make_filter_range(
        stored, [&](int64_t index) { return !loaded.contains(index); }));
  }
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
  LogicalResult plan(KernelOp kernel, ArrayAttr aliases);
  LogicalResult keepVariant(StringRef kernel, ArrayRef<KernelOp> variants);
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
    if (std::optional<MemoryAccess> access = getSingleAccess(op);
        access && access->isTile) {
      unsigned argument = access->getArgNumber();
      shape.elementBytes[argument] = getDTypeBytes(access->getElementType());
      shape.lengths[argument] =
          cast<MemRefType>(access->memref.getType()).getShape().back();
      (access->isWrite ? shape.stored : shape.loaded).insert(argument);
    }
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  kernel.getBody().walk([&](Block *block) {
    int64_t moves = llvm::count_if(*block, [](Operation &op) {
      std::optional<MemoryAccess> access = getSingleAccess(&op);
      return access && access->isTile;
    });
    shape.moves = std::max(shape.moves, moves);
  });
  return shape;
}

/// Elements of a row of `size` that one access may move, of `pack` at most:
/// LayoutAttr::packFor before there is a layout.
static int64_t packFor(int64_t size, int64_t pack) {
  return std::min(pack, size & -size);
}

/// The widest pack of any row, a power of two of `limit` elements at most.
static int64_t choosePack(const RowShape &shape, int64_t limit) {
  int64_t pack = 1;
  for (int64_t size : shape.sizes)
    pack = std::max(pack, packFor(size, limit));
  return pack;
}

/// Packs of the row that has the most of them.
static int64_t countPacks(const RowShape &shape, int64_t pack) {
  int64_t most = 1;
  for (int64_t size : shape.sizes)
    most = std::max(most, size / packFor(size, pack));
  return most;
}

/// Whether lanes are to hold kInPlacePacks of each row at once.
static bool holdsMore(const RowShape &shape, int64_t pack, Place place) {
  return place == Place::InPlace &&
         shape.moves * kInPlacePacks * pack * shape.widest() <= kInPlaceBytes;
}

static int64_t chooseBlock(const RowShape &shape, int64_t pack, Place place) {
  if (shape.isRagged)
    return kRaggedBlock;
  if (shape.sizes.empty())
    return kMinBlock;
  if (holdsMore(shape, pack, place))
    return kInPlaceBlock;
  int64_t bytes = std::max<int64_t>(1, shape.moves * pack * shape.widest());
  return std::clamp<int64_t>(llvm::bit_floor<uint64_t>(kBlockBytes / bytes),
                             kMinBlock, kMaxBlock);
}

/// Shares a row of `size` elements out over lanes. A row stays within one warp
/// while that takes at most kMaxPacks packs a lane; then the split that leaves
/// the fewest lanes idle wins, and of equals the one with the fewest packs. A
/// lane group never moves less than a 32-byte sector at once.
///
/// Lanes that never meet need no power of two: a row of one pack a lane leaves
/// none idle then.
static LayoutAttr chooseLayout(MLIRContext *context, const RowShape &shape,
                               int64_t pack, Place place,
                               bool lanesMeet = true) {
  int64_t needed = countPacks(shape, pack);
  int64_t threads = chooseBlock(shape, pack, place);
  if (place == Place::Apart && !lanesMeet && !shape.isRagged &&
      needed <= kWarp) {
    int64_t rows = 1; // to fill whole warps
    while (rows * needed % kWarp != 0 || rows * needed < threads)
      ++rows;
    return LayoutAttr::get(context, needed, 1, pack, rows, /*groups=*/1);
  }
  int64_t sector = std::max<int64_t>(1, 32 / (pack * shape.widest()));
  int64_t lanes = 0, packs = 0, slots = 0;
  int64_t fewest = holdsMore(shape, pack, place) ? kInPlacePacks : 1;
  for (int64_t p = 1; p <= kMaxPacks; ++p) {
    int64_t l = llvm::PowerOf2Ceil(llvm::divideCeil(needed, p));
    if (l > kWarp || (p > 1 && l < sector))
      continue;
    if (!slots || packs < fewest || l * p < slots) {
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
  int64_t rows = lanes > kWarp ? 1 : threads / lanes;
  return LayoutAttr::get(context, lanes, packs, pack, rows, /*groups=*/1);
}

/// Whether groups of lanes can share the kernel's merge loops: these are at the
/// top of a dense grid's body, nothing is stored ahead of them, and lanes meet
/// nowhere else.
static bool canShareMerges(KernelOp kernel, ArrayAttr aliases) {
  auto forall = dyn_cast_if_present<ForallOp>(kernel.getGrid());
  if (!forall || forall.getOps<MergeLoopOp>().empty() ||
      lanesMeet(kernel, aliases))
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

/// At most kGroupedPacks packs a lane, as long as a row has a warp of lanes:
/// what a lane does once a chunk costs as much as what it does with a pack. The
/// launch chooses how many groups share its merge loops.
static LayoutAttr getGroupedLayout(MLIRContext *context, const RowShape &shape,
                                   int64_t pack) {
  constexpr int64_t kMostGroups = 16, kGroupedPacks = 2;
  int64_t needed = countPacks(shape, pack);
  int64_t packs = std::clamp<int64_t>(needed / kWarp, 1, kGroupedPacks);
  return LayoutAttr::get(context, llvm::divideCeil(needed, packs), packs, pack,
                         /*rows=*/1, kMostGroups);
}

/// The type of a tensor whose rows follow each other without gaps, where its
/// sizes say how far apart they then are: outside of a dim of unknown size,
/// they do not. Null if `type` says all of it already.
static MemRefType getDenseType(MemRefType type) {
  SmallVector<int64_t> strides = type.getStridesAndOffset().first;
  int64_t stride = 1;
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    strides[dim] = stride;
    if (type.isDynamicDim(dim))
      break;
    stride *= type.getDimSize(dim);
  }
  auto dense = MemRefType::get(
      type.getShape(), type.getElementType(),
      StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides),
      type.getMemorySpace());
  return dense == type ? MemRefType() : dense;
}

/// Folds the branches and predicates on what `variant` knows.
static void foldBranches(KernelOp variant) {
  RewritePatternSet patterns(variant.getContext());
  scf::IfOp::getCanonicalizationPatterns(patterns, variant.getContext());
  LoadOp::getCanonicalizationPatterns(patterns, variant.getContext());
  (void)applyPatternsGreedily(variant, std::move(patterns));
}

/// Takes the arguments that may be the same tensor (N11) for different ones,
/// and adds the guards that this takes: what compares their pointers is false.
static void makeDistinct(KernelOp variant, ArrayAttr aliases) {
  SmallVector<Attribute> guards(variant.getGuardsAttr().getValue());
  for (auto pair : aliases.getAsRange<ArrayAttr>())
    guards.push_back(makeDistinctGuard(variant.getContext(),
                                       cast<IntegerAttr>(pair[0]).getInt(),
                                       cast<IntegerAttr>(pair[1]).getInt()));
  variant.setGuardsAttr(ArrayAttr::get(variant.getContext(), guards));
  variant.walk([&](arith::CmpIOp compare) {
    auto argument = [](Value pointer) -> int64_t {
      auto extract =
          pointer.getDefiningOp<memref::ExtractAlignedPointerAsIndexOp>();
      return extract ? getKernelArgument(extract.getSource()).getArgNumber()
                     : -1;
    };
    int64_t a = argument(compare.getLhs()), b = argument(compare.getRhs());
    if (compare.getPredicate() != arith::CmpIPredicate::eq || a < 0 || b < 0 ||
        !areGuardedDistinct(variant.getGuardsAttr(), a, b))
      return;
    OpBuilder builder(compare);
    compare.replaceAllUsesWith(
        arith::ConstantIntOp::create(builder, compare.getLoc(), false, 1)
            .getResult());
  });
  if (!aliases.empty())
    foldBranches(variant);
}

/// Gives the tensors that `variant` moves as rows their dense types, and adds
/// the guards that this takes.
static void makeDense(KernelOp variant, const RowShape &shape) {
  SmallVector<Attribute> guards(variant.getGuardsAttr().getValue());
  SmallVector<Type> types(variant.getArgumentTypes());
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
  }
  variant.setGuardsAttr(ArrayAttr::get(variant.getContext(), guards));
  variant.setType(FunctionType::get(variant.getContext(), types, {}));
}

/// Adds the guards that tensors of the same dims, but for those moved as rows,
/// lie in memory alike, so that one index serves them all: the lse of all
/// states, as a rule.
static void makeAlike(KernelOp variant, const RowShape &shape) {
  llvm::MapVector<Attribute, SmallVector<int64_t>> groups;
  for (unsigned i = 0; i < variant.getNumArguments(); ++i) {
    auto type = dyn_cast<MemRefType>(variant.getArgumentTypes()[i]);
    if (!type || variant.isArgAbsent(i) || shape.elementBytes.count(i) ||
        llvm::none_of(type.getStridesAndOffset().first, ShapedType::isDynamic))
      continue;
    // A dim without a name ties nothing, so nothing says that they are alike.
    auto dims = variant.getArgAttrOfType<ArrayAttr>(i, kDimsAttr);
    if (dims &&
        llvm::none_of(dims.getAsRange<StringAttr>(),
                      [](StringAttr dim) { return dim.getValue().empty(); }))
      groups[dims].push_back(i);
  }
  SmallVector<Attribute> guards(variant.getGuardsAttr().getValue());
  for (auto &[dims, group] : groups) {
    // What may be left out has no strides to tell.
    std::stable_partition(group.begin(), group.end(),
                          [&](int64_t i) { return !variant.isArgOptional(i); });
    if (group.size() > 1 && !variant.isArgOptional(group.front()))
      guards.push_back(makeSameStridesGuard(variant.getContext(), group));
  }
  variant.setGuardsAttr(ArrayAttr::get(variant.getContext(), guards));
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

/// The guards of a variant with such packs and lanes; a ragged grid counts its
/// rows in 32 bits (cu_seqlens is i32) and computes the rest in 64.
static SmallVector<Attribute>
getGuards(MLIRContext *context, const RowShape &shape, LayoutAttr layout) {
  SmallVector<Attribute> guards;
  std::map<int64_t, SmallVector<int64_t>> byAlignment;
  for (auto [index, bytes] : shape.elementBytes)
    if (int64_t pack = layout.packFor(shape.lengths.at(index)); pack > 1)
      byAlignment[pack * bytes].push_back(index);
  for (auto &[bytes, args] : byAlignment)
    guards.push_back(makeAlignGuard(context, args, bytes));
  if (!shape.isRagged)
    guards.push_back(makeMaxRowsGuard(context, INT32_MAX / layout.getLanes()));
  return guards;
}

/// Whether a tensor that is written and not read may be one that is read. What
/// is updated is in place as it is; that it is given a second time, as in a
/// merge of a state with itself, is legal, but no call to have a variant for.
static bool hasCallsInPlace(KernelOp kernel, ArrayAttr aliases) {
  return llvm::any_of(aliases.getAsRange<ArrayAttr>(), [&](ArrayAttr pair) {
    return kernel.getArgAccess(cast<IntegerAttr>(pair[0]).getInt()) == "write";
  });
}

/// The variants for tensors whose rows follow each other, with the widest
/// accesses there are: one for the common call, in which outputs are no inputs,
/// and, if they may be, one for the call in place.
static void planDense(KernelOp kernel, StringRef target, const RowShape &shape,
                      ArrayAttr aliases) {
  MLIRContext *context = kernel.getContext();
  int64_t pack = choosePack(shape, getAccessBytes(target) / shape.widest());
  auto add = [&](StringRef suffix, Place place) {
    KernelOp dense = cloneVariant(
        kernel, suffix, chooseLayout(context, shape, pack, place), {});
    if (place == Place::Apart)
      makeDistinct(dense, aliases);
    LayoutAttr layout =
        canShareMerges(dense, aliases)
            ? getGroupedLayout(context, shape, pack)
            : chooseLayout(context, shape, pack, place, lanesMeet(dense));
    SmallVector<Attribute> guards = getGuards(context, shape, layout);
    llvm::append_range(guards, dense.getGuardsAttr());
    dense.setLayoutAttr(layout);
    dense.setGuardsAttr(ArrayAttr::get(context, guards));
    makeDense(dense, shape);
    makeAlike(dense, shape);
  };
  add("dense", shape.place());
  if (hasCallsInPlace(kernel, aliases))
    add("place", Place::InPlace);
}

/// The variant for any strides. Slices often keep no more than 16 bytes of
/// alignment.
static void planFast(KernelOp kernel, const RowShape &shape,
                     ArrayAttr aliases) {
  MLIRContext *context = kernel.getContext();
  int64_t pack = choosePack(shape, kAnyAccessBytes / shape.widest());
  LayoutAttr layout = canShareMerges(kernel, aliases)
                          ? getGroupedLayout(context, shape, pack)
                          : chooseLayout(context, shape, pack, shape.place());
  SmallVector<Attribute> guards = getGuards(context, shape, layout);
  if (!guards.empty())
    cloneVariant(kernel, "fast", layout, guards);
}

/// A CPU has a variant for calls out of place, which computes the scalars of
/// several rows at once, and before it one for those that move more than its
/// caches keep: its stores do not read what they replace, which takes packs of
/// 16 bytes and outputs that are no inputs.
static void planCPU(KernelOp kernel, StringRef target, const RowShape &shape,
                    ArrayAttr aliases) {
  MLIRContext *context = kernel.getContext();
  int64_t pack =
      choosePack(shape, hasWideRegisters(target) ? kWideCpuPack : kCpuPack);
  auto layout = [&](int64_t rows) {
    return LayoutAttr::get(context, 1, countPacks(shape, pack), pack, rows,
                           /*groups=*/1);
  };
  auto addVariant = [&](StringRef suffix, ArrayRef<Attribute> guards) {
    KernelOp variant = cloneVariant(kernel, suffix, layout(1), guards);
    makeDistinct(variant, aliases);
    if (canBatchScalars(variant, aliases))
      variant.setLayoutAttr(layout(kCpuBatch));
    return variant;
  };
  SmallVector<int64_t> stored = shape.outputs();
  // What is read takes its share of the caches too; what is updated stays
  // there.
  SmallVector<int64_t> moved;
  for (auto [arg, bytes] : shape.elementBytes)
    if (!shape.loaded.contains(arg) || !shape.stored.contains(arg))
      moved.push_back(arg);
  bool isWide = !stored.empty() && llvm::all_of(stored, [&](int64_t arg) {
    return packFor(shape.lengths.at(arg), pack) * shape.elementBytes.at(arg) %
               kAnyAccessBytes ==
           0;
  });
  if (isWide)
    addVariant("streamed", {makeAlignGuard(context, stored, kAnyAccessBytes),
                            makeBeyondCacheGuard(context, moved)});
  if (aliases.empty()) { // all calls are out of place
    addVariant("any", {});
    return;
  }
  // Where nothing is gained by it, one variant does for both.
  if (KernelOp apart = addVariant("apart", {});
      apart.getLayoutAttr().getRows() == 1)
    apart.erase();
  cloneVariant(kernel, "any", layout(1), {});
}

LogicalResult PlanLayoutPass::plan(KernelOp kernel, ArrayAttr aliases) {
  FailureOr<RowShape> shape = getRowShape(kernel);
  if (failed(shape))
    return failure();
  MLIRContext *context = &getContext();
  if (!isGPU(target)) {
    planCPU(kernel, target, *shape, aliases);
    return success();
  }

  if (!shape->elementBytes.empty())
    planDense(kernel, target, *shape, aliases);
  planFast(kernel, *shape, aliases);
  cloneVariant(kernel, "any", chooseLayout(context, *shape, 1, Place::Apart),
               {});
  return success();
}

/// Erases every variant of `kernel` but the one that is wanted.
LogicalResult PlanLayoutPass::keepVariant(StringRef kernel,
                                          ArrayRef<KernelOp> variants) {
  SmallVector<KernelOp> others;
  SmallVector<StringRef> names;
  bool found = false;
  for (KernelOp op : variants) {
    StringRef name = op.getSymName().drop_front(kernel.size() + 1);
    names.push_back(name);
    found |= name == variant;
    if (name != variant)
      others.push_back(op);
  }
  if (!found)
    return getOperation().emitError()
           << "expected one of the variants of '" << kernel << "' ("
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
  module->setAttr(kTargetAttr, StringAttr::get(&getContext(), target));
  SmallVector<KernelOp> kernels = llvm::to_vector(module.getOps<KernelOp>());
  for (KernelOp kernel : kernels) {
    // Variants stand before their kernel.
    Operation *before = kernel->getPrevNode(), *after = kernel->getNextNode();
    DictionaryAttr signature = getSignature(kernel);
    if (kernels.size() == 1)
      module->setAttr(kSignatureAttr, signature);
    if (failed(plan(kernel, signature.getAs<ArrayAttr>("aliases"))))
      return signalPassFailure();
    std::string name = kernel.getSymName().str();
    kernel.erase();
    if (variant.empty())
      continue;
    SmallVector<KernelOp> variants;
    for (Operation *op = before ? before->getNextNode()
                                : &module.getBody()->front();
         op != after; op = op->getNextNode())
      variants.push_back(cast<KernelOp>(op));
    if (failed(keepVariant(name, variants)))
      return signalPassFailure();
  }
}
