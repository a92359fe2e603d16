//===- TargetCheck.cpp - what a GPU must have for a kernel ----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Target/LLVMIR.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMRequiresSMTraits.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace mlafix::target;

namespace {
/// A minimum compute capability (10 * major + minor) for the operations whose
/// name begins with `prefix`.
struct Requirement {
  StringLiteral prefix;
  unsigned capability;
};
} // namespace

// Requirements of operations that lack MLIR's trait NVVMRequiresSM, from the
// "target ISA notes" of the PTX manual. tanh exists on sm_75, but only from PTX
// 7.0 on, which LLVM does not choose there.
static constexpr Requirement operationRequirements[] = {
    {"nvvm.griddepcontrol", 90},
    {"nvvm.convert.f32x2.to.f8x2", 89},
    {"nvvm.convert.f16x2.to.f8x2", 89},
    {"nvvm.convert.bf16x2.to.f8x2", 89},
    {"nvvm.convert.f8x2.to.f16x2", 89},
    {"nvvm.convert.f32x2.to.f6x2", 100},
    {"nvvm.convert.f32x2.to.f4x2", 100},
    {"nvvm.convert.f32x2.to.bf16x2", 80},
    {"nvvm.cp.async.bulk", 90},
    {"nvvm.cp.async", 80},
    {"nvvm.elect.sync", 90},
    {"nvvm.cluster", 90},
    {"nvvm.stmatrix", 90},
    {"nvvm.barrier.arrive", 70},
    {"llvm.intr.tanh", 80},
};

static constexpr Requirement intrinsicRequirements[] = {
    {"llvm.nvvm.griddepcontrol", 90},  {"llvm.nvvm.ff.to.e4m3x2", 89},
    {"llvm.nvvm.ff.to.e5m2x2", 89},    {"llvm.nvvm.f16x2.to.e4m3x2", 89},
    {"llvm.nvvm.f16x2.to.e5m2x2", 89}, {"llvm.nvvm.e4m3x2.to.f16x2", 89},
    {"llvm.nvvm.e5m2x2.to.f16x2", 89}, {"llvm.nvvm.ff2bf16x2", 80},
    {"llvm.nvvm.f2bf16", 80},          {"llvm.nvvm.ex2.approx.ftz.bf16", 90},
    {"llvm.nvvm.ex2.approx.bf16", 90}, {"llvm.nvvm.tanh.approx.bf16", 90},
    {"llvm.nvvm.fma.rn.bf16", 80},     {"llvm.nvvm.fmin.bf16", 80},
    {"llvm.nvvm.fmax.bf16", 80},       {"llvm.nvvm.redux.sync.f", 100},
    {"llvm.nvvm.redux.sync", 80},      {"llvm.nvvm.cp.async.bulk", 90},
    {"llvm.nvvm.cp.async", 80},        {"llvm.nvvm.elect.sync", 90},
    {"llvm.nvvm.cluster", 90},
};

/// Returns true if `op` is an LLVM intrinsic for which NVPTX has neither an
/// instruction nor a library function. Of f32 and narrower floats, NVPTX has
/// exp2 and, where `afn` allows an approximation, sine, cosine and tanh.
static bool isUnselectable(mlir::Operation *op) {
  static const StringSet<> missing = {
      "exp",  "exp10", "log",   "log2",   "log10",  "pow",
      "powi", "tan",   "sinh",  "cosh",   "asin",   "acos",
      "atan", "atan2", "lrint", "llrint", "lround", "llround"};
  static const StringSet<> approximate = {"sin", "cos", "sincos", "tanh"};
  StringRef name = op->getName().getStringRef();
  if (!name.consume_front("llvm.intr."))
    return false;
  bool isApproximate = approximate.contains(name);
  if (!isApproximate && name != "exp2")
    return missing.contains(name);
  if (mlir::getElementTypeOrSelf(op->getOperand(0)).getIntOrFloatBitWidth() >
      32)
    return true;
  mlir::LLVM::FastmathFlags flags =
      cast<mlir::LLVM::FastmathFlagsInterface>(op).getFastmathAttr().getValue();
  return isApproximate &&
         !bitEnumContainsAll(flags, mlir::LLVM::FastmathFlags::afn);
}

static unsigned requiredCapability(StringRef name,
                                   ArrayRef<Requirement> requirements) {
  for (const Requirement &requirement : requirements)
    if (name.starts_with(requirement.prefix))
      return requirement.capability;
  return 0;
}

static LogicalResult checkOperation(mlir::Operation *op,
                                    const TargetSpec &target) {
  StringRef name = op->getName().getStringRef();
  if (isUnselectable(op))
    return op->emitError() << "expected operations that PTX has instructions "
                              "for, got '"
                           << name << "'";
  StringRef what = name;
  unsigned required = requiredCapability(name, operationRequirements);
  if (auto call = dyn_cast<mlir::LLVM::CallIntrinsicOp>(op)) {
    what = call.getIntrin();
    required = requiredCapability(what, intrinsicRequirements);
  }
  if (auto versioned = dyn_cast<mlir::NVVM::RequiresSMInterface>(op))
    if (!versioned.getRequiredMinSMVersion().isCompatibleWith(
            mlir::NVVM::NVVMCheckSMVersion(
                /*archAccelerated=*/false,
                static_cast<int>(target.capability))))
      return op->emitError() << "expected a target that has '" << name
                             << "', got " << target.name;
  if (required > target.capability)
    return op->emitError() << "expected sm_" << required << " or later for '"
                           << what << "', got " << target.name;
  if (auto call = dyn_cast<mlir::LLVM::CallOp>(op)) {
    std::optional<StringRef> callee = call.getCallee();
    auto function = callee ? op->getParentOfType<mlir::ModuleOp>()
                                 .lookupSymbol<mlir::LLVM::LLVMFuncOp>(*callee)
                           : mlir::LLVM::LLVMFuncOp();
    if (!function || function.isExternal())
      return op->emitError()
             << "expected every function that a kernel calls to be defined "
                "beside it, got a call of '"
             << callee.value_or("a function pointer") << "'";
  }
  return success();
}

LogicalResult mlafix::target::checkTarget(mlir::ModuleOp module,
                                          const TargetSpec &target) {
  bool failed = false;
  module.walk([&](mlir::Operation *op) {
    failed |= llvm::failed(checkOperation(op, target));
  });
  return failure(failed);
}

/// Returns true if `op` loads or stores 32 bytes at once.
static bool isWide(mlir::Operation *op) {
  mlir::Type type;
  std::optional<uint64_t> alignment;
  if (auto load = dyn_cast<mlir::LLVM::LoadOp>(op)) {
    type = load.getType();
    alignment = load.getAlignment();
  } else if (auto store = dyn_cast<mlir::LLVM::StoreOp>(op)) {
    type = store.getValue().getType();
    alignment = store.getAlignment();
  }
  auto vector = dyn_cast_or_null<mlir::VectorType>(type);
  return vector && !vector.isScalable() && alignment.value_or(0) >= 32 &&
         vector.getNumElements() * vector.getElementTypeBitWidth() >= 256;
}

static bool convertsFp8(mlir::Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (auto call = dyn_cast<mlir::LLVM::CallIntrinsicOp>(op))
    name = call.getIntrin();
  return name.contains("f8x2") || name.contains("e4m3x2") ||
         name.contains("e5m2x2");
}

/// Returns true if `op` is the byte-packing assembly that MathToNVVM.cpp
/// writes.
static bool packsBytes(mlir::Operation *op) {
  auto assembly = dyn_cast<mlir::LLVM::InlineAsmOp>(op);
  return assembly && assembly.getAsmString().starts_with("cvt.pack");
}

/// Returns true if `op` begins a kernel whose rows go over clusters, which may
/// have `st.async` (PTX 8.1).
static bool beginsCluster(mlir::Operation *op) {
  return op->getName().getStringRef() == "nvvm.cluster.arrive.relaxed";
}

unsigned mlafix::target::requiredPtxVersion(mlir::ModuleOp module,
                                            const TargetSpec &target) {
  // For GPUs that this switch does not list, the PTX version that LLVM chooses
  // is new enough.
  bool (*needsMore)(mlir::Operation *) = nullptr;
  unsigned version = 0;
  switch (target.capability) {
  case 75:
    needsMore = packsBytes, version = 65;
    break;
  case 89:
    needsMore = convertsFp8, version = 81;
    break;
  case 90:
    needsMore = beginsCluster, version = 81;
    break;
  case 100:
  case 120:
    needsMore = isWide, version = 88;
    break;
  default:
    return 0;
  }
  return anyOp(module, needsMore) ? version : 0;
}
