//===- Params.cpp - a kernel's parameters ---------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/Params.h"

#include "dialect/Guards.h"
#include "dialect/MlafixThread.h"
#include "lib/Transforms/LoweredAccess.h"
#include "lib/Transforms/ThreadOps.h"
#include "mlafix/UnitLimits.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlafix;

namespace {
/// Says which properties of a tensor argument the body uses.
struct TensorUses {
  bool pointer = false;
  bool lines = false;
  SmallVector<bool> size, stride, reciprocal; ///< per dim
};
} // namespace

unsigned mlafix::getTableOwner(KernelOp kernel, TableLinesOp lines) {
  BlockArgument table = getKernelArgument(lines.getSource());
  auto owner = static_cast<unsigned>(
      getStrideOwner(kernel.getGuardsAttr(), table.getArgNumber()));
  bool isAlike =
      kernel.getArgument(owner).getType() == table.getType() &&
      kernel.getArgDims(owner) == kernel.getArgDims(table.getArgNumber());
  return isAlike ? owner : table.getArgNumber();
}

std::pair<unsigned, unsigned> mlafix::getSizeOwner(KernelOp kernel,
                                                   unsigned arg, unsigned dim) {
  auto name = cast<StringAttr>(kernel.getArgDims(arg)[dim]);
  if (name.getValue().empty())
    return {arg, dim};
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (isa<MemRefType>(kernel.getArgumentTypes()[i]) &&
        !kernel.isArgOptional(i) && !kernel.isArgAbsent(i))
      for (auto [position, other] : llvm::enumerate(kernel.getArgDims(i)))
        if (other == name)
          return {i, position};
  return {arg, dim};
}

static SmallVector<TensorUses> collectUses(KernelOp kernel) {
  SmallVector<TensorUses> uses(kernel.getNumArguments());
  for (auto [of, type] : llvm::zip(uses, kernel.getArgumentTypes()))
    if (auto memref = dyn_cast<MemRefType>(type)) {
      of.size.resize(memref.getRank());
      of.stride.resize(memref.getRank());
      of.reciprocal.resize(memref.getRank());
    }
  kernel.walk([&](Operation *op) {
    if (auto dim = dyn_cast<memref::DimOp>(op)) {
      if (BlockArgument argument = getKernelArgument(dim.getSource()))
        if (std::optional<int64_t> index = dim.getConstantIndex())
          uses[argument.getArgNumber()].size[*index] = true;
      return;
    }
    if (auto metadata = dyn_cast<memref::ExtractStridedMetadataOp>(op)) {
      unsigned argument =
          getKernelArgument(metadata.getSource()).getArgNumber();
      int64_t owner = getStrideOwner(kernel.getGuardsAttr(), argument);
      for (auto [dim, stride] : llvm::enumerate(metadata.getStrides()))
        if (!stride.use_empty())
          uses[owner].stride[dim] = true;
      return;
    }
    if (auto reciprocal = dyn_cast<SizeReciprocalOp>(op)) {
      uses[getKernelArgument(reciprocal.getSource()).getArgNumber()]
          .reciprocal[reciprocal.getDim()] = true;
      return;
    }
    if (auto lines = dyn_cast<TableLinesOp>(op)) {
      uses[getTableOwner(kernel, lines)].lines = true;
      return;
    }
    for (BlockArgument argument : getAddressed(op))
      uses[argument.getArgNumber()].pointer = true;
    std::optional<LoweredAccess> access = getAccess(op);
    BlockArgument argument =
        access ? getKernelArgument(access->memref) : BlockArgument();
    if (!argument)
      return;
    uses[argument.getArgNumber()].pointer = true;
    int64_t owner =
        getStrideOwner(kernel.getGuardsAttr(), argument.getArgNumber());
    // Dim 0 of an argument with several tensors selects a tensor, which takes
    // no stride.
    bool isMany = kernel.isArgMany(argument.getArgNumber());
    for (auto [dim, stride] : llvm::enumerate(getStrides(access->memref)))
      if (isGuardedPacked(kernel.getGuardsAttr(), argument.getArgNumber(),
                          dim)) {
        auto [of, next] =
            getSizeOwner(kernel, argument.getArgNumber(), dim + 1);
        uses[of].size[next] = true;
      } else if (ShapedType::isDynamic(stride) && !(isMany && dim == 0)) {
        uses[owner].stride[dim] = true;
      }
  });
  return uses;
}

/// True if `arg` is the number of threads of a lane group, chosen by the launch
/// (GridToGroups.cpp).
static bool isGroupThreads(KernelOp kernel, unsigned arg) {
  return kernel.getLayoutAttr().isGrouped() &&
         arg + 1 == kernel.getNumArguments();
}

/// Appends the parameter by which the ranks of a collective kernel synchronise.
static void addGroup(KernelOp kernel, SmallVectorImpl<ParamAttr> &params) {
  Region &body = kernel.getBody();
  if (body.getOps<WaitPeersOp>().empty() &&
      body.getOps<BeginExchangeOp>().empty())
    return;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (kernel.isArgPeers(i)) {
      params.push_back(ParamAttr::get(kernel.getContext(), ParamKind::Group,
                                      /*arg=*/0, /*dim=*/0,
                                      kernel.getArgMost(i)));
      return;
    }
}

SmallVector<ParamAttr> mlafix::collectParams(KernelOp kernel, unsigned last) {
  MLIRContext *context = kernel.getContext();
  SmallVector<TensorUses> uses = collectUses(kernel);
  SmallVector<ParamAttr> params;
  for (unsigned i = 0, count = kernel.getNumArguments() - last; i < count;
       ++i) {
    if (!isa<MemRefType>(kernel.getArgumentTypes()[i])) {
      if (!kernel.getArgument(i).use_empty())
        params.push_back(isGroupThreads(kernel, i)
                             ? ParamAttr::get(context, ParamKind::GroupThreads)
                             : ParamAttr::get(context, ParamKind::Scalar, i));
      continue;
    }
    if (uses[i].pointer)
      params.push_back(kernel.isArgMany(i)
                           ? ParamAttr::get(context, ParamKind::Peers, i,
                                            /*dim=*/0, kernel.getArgMost(i))
                           : ParamAttr::get(context, ParamKind::Pointer, i));
    if (uses[i].lines)
      params.push_back(ParamAttr::get(context, ParamKind::Lines, i));
    for (auto [dim, used] : llvm::enumerate(uses[i].size))
      if (used)
        params.push_back(ParamAttr::get(context, ParamKind::Size, i, dim));
    for (auto [dim, used] : llvm::enumerate(uses[i].reciprocal))
      if (used)
        params.push_back(
            ParamAttr::get(context, ParamKind::Reciprocal, i, dim));
    for (auto [dim, used] : llvm::enumerate(uses[i].stride))
      if (used)
        params.push_back(ParamAttr::get(context, ParamKind::Stride, i, dim));
  }
  addGroup(kernel, params);
  return params;
}

BlockArgument mlafix::getParamArgument(KernelOp kernel, ParamAttr param) {
  bool isChosen = param.getKind() == ParamKind::GroupThreads;
  return kernel.getArgument(isChosen ? kernel.getNumArguments() - 1
                                     : param.getArg());
}

Type mlafix::getParamType(KernelOp kernel, ParamAttr param,
                          unsigned addressSpace) {
  MLIRContext *context = kernel.getContext();
  switch (param.getKind()) {
  case ParamKind::Pointer:
    return LLVM::LLVMPointerType::get(context, addressSpace);
  case ParamKind::Peers:
  case ParamKind::Group:
    return LLVM::LLVMPointerType::get(context);
  case ParamKind::Size:
  case ParamKind::Stride:
  case ParamKind::Reciprocal:
  case ParamKind::Lines:
    return IntegerType::get(context, 64);
  case ParamKind::Scalar:
  case ParamKind::GroupThreads: {
    Type type = getParamArgument(kernel, param).getType();
    if (type.isIndex())
      return IntegerType::get(context, 64);
    return type.isInteger(1) ? IntegerType::get(context, 8) : type;
  }
  case ParamKind::Local:
    return IntegerType::get(context, 32);
  }
  llvm_unreachable("all kinds are handled");
}

Type mlafix::getTableType(ParamAttr param) {
  if (!param.getSpec().hasRanks())
    return {};
  MLIRContext *context = param.getContext();
  auto pointer = LLVM::LLVMPointerType::get(context, kGlobalMemory);
  Type table = LLVM::LLVMArrayType::get(pointer, param.getRanks());
  if (param.getKind() == ParamKind::Peers)
    return table;
  Type i32 = IntegerType::get(context, 32), i64 = IntegerType::get(context, 64);
  return LLVM::LLVMStructType::getLiteral(context,
                                          {i32, i32, i64, pointer, table});
}

VariantAttr mlafix::describeCodeVersion(KernelOp kernel,
                                        ArrayRef<ParamAttr> params) {
  bool waits = anyOp(kernel, isGridControl);
  auto guards = kernel.getGuardsAttr().getAsRange<GuardAttr>();
  return VariantAttr::get(
      kernel.getContext(), kernel.getSymNameAttr(), llvm::to_vector(guards),
      params, kernel.getGeometryAttr(), kernel.getLayoutAttr(), waits);
}
