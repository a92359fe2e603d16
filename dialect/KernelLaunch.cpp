//===- KernelLaunch.cpp - guards and geometry of a kernel -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/KernelVerifier.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlafix;

/// Describes argument `arg` by a phrase that follows "got" in a message. If the
/// kernel has no such argument, describes the kernel instead.
static std::string describeArg(KernelOp kernel, int64_t arg) {
  if (arg >= static_cast<int64_t>(kernel.getNumArguments()))
    return "a kernel of " + std::to_string(kernel.getNumArguments()) +
           " arguments";
  if (kernel.isArgAbsent(arg))
    return "an absent one";
  std::string type;
  llvm::raw_string_ostream(type) << kernel.getArgumentTypes()[arg];
  return type;
}

/// Returns the type of argument `arg` if it is a tensor that calls may pass.
/// Otherwise reports an error about the attribute `what` and returns null.
static MemRefType getTensor(KernelOp kernel, int64_t arg, Attribute what) {
  if (arg < static_cast<int64_t>(kernel.getNumArguments()) &&
      !kernel.isArgAbsent(arg))
    if (auto type = dyn_cast<MemRefType>(kernel.getArgumentTypes()[arg]))
      return type;
  kernel.emitOpError() << "expected argument " << arg << " of " << what
                       << " to be a tensor that is not absent, got "
                       << describeArg(kernel, arg);
  return {};
}

static LogicalResult verifyDim(KernelOp kernel, int64_t dim, MemRefType type,
                               Attribute what) {
  if (dim < type.getRank())
    return success();
  return kernel.emitOpError() << "expected a dim below " << type.getRank()
                              << " in " << what << ", got " << dim;
}

static LogicalResult verifyGuard(KernelOp kernel, GuardAttr guard) {
  SmallVector<MemRefType> types;
  for (int64_t arg : guard.getArgs()) {
    types.push_back(getTensor(kernel, arg, guard));
    if (!types.back())
      return failure();
  }
  GuardArgs args = guard.getSpec().args;
  if (args == GuardArgs::Dim)
    return verifyDim(kernel, guard.getDim(), types.front(), guard);
  if (args != GuardArgs::Alike)
    return success();
  if (kernel.isArgOptional(guard.getArgs().front()))
    return kernel.emitOpError()
           << "expected the first argument of " << guard
           << " to be one that is never omitted, got an optional one";
  for (MemRefType type : types)
    if (type.getRank() != types.front().getRank())
      return kernel.emitOpError()
             << "expected arguments of one rank in " << guard << ", got ranks "
             << types.front().getRank() << " and " << type.getRank();
  return success();
}

static LogicalResult verifyExtent(KernelOp kernel, ExtentAttr extent) {
  if (extent.isConstant())
    return success();
  if (extent.isSize()) {
    MemRefType type = getTensor(kernel, extent.getArg(), extent);
    if (!type)
      return failure();
    return verifyDim(kernel, extent.getDim(), type, extent);
  }
  if (extent.getArg() < static_cast<int64_t>(kernel.getNumArguments())) {
    Type type = kernel.getArgumentTypes()[extent.getArg()];
    if (type.isIndex() || type.isInteger(64) || type.isInteger(32))
      return success();
  }
  return kernel.emitOpError()
         << "expected argument " << extent.getArg() << " of " << extent
         << " to be an index, i64 or i32, got "
         << describeArg(kernel, extent.getArg());
}

LogicalResult mlafix::verifyLaunch(KernelOp kernel) {
  if (ArrayAttr guards = kernel.getGuardsAttr())
    for (GuardAttr guard : guards.getAsRange<GuardAttr>())
      if (failed(verifyGuard(kernel, guard)))
        return failure();
  Attribute geometry = kernel.getGeometryAttr();
  if (!geometry)
    return success();
  if (!kernel.getPlanAttr())
    return kernel.emitOpError()
           << "expected a plan beside a geometry, got none";
  SmallVector<ExtentAttr> extents =
      llvm::TypeSwitch<Attribute, SmallVector<ExtentAttr>>(geometry)
          .Case([](RaggedGeometryAttr ragged) {
            SmallVector<ExtentAttr> all = {ragged.getRows()};
            llvm::append_range(all, ragged.getInner());
            return all;
          })
          .Case([](GroupsGeometryAttr groups) {
            SmallVector<ExtentAttr> all(groups.getExtents());
            all.push_back(groups.getPieces());
            return all;
          })
          .Case([](GridGeometryAttr dense) {
            SmallVector<ExtentAttr> all(dense.getExtents());
            if (dense.getParts())
              all.push_back(dense.getParts());
            return all;
          })
          .Case([](CpuGeometryAttr dense) {
            return SmallVector<ExtentAttr>(dense.getExtents());
          });
  for (ExtentAttr extent : extents)
    if (failed(verifyExtent(kernel, extent)))
      return failure();
  return success();
}
