//===- Specialize.cpp - bind named dims and dtypes -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Passes.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

namespace mlafix {
#define GEN_PASS_DEF_SPECIALIZEPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

namespace {
/// The compile-time names of a kernel, and what they are bound to.
struct Names {
  llvm::MapVector<StringRef, int64_t> dims; // kDynamic: unbound
  llvm::MapVector<StringRef, Type> dtypes;  // null: unbound

  std::string list() const {
    std::string text;
    for (StringRef name : llvm::concat<const StringRef>(
             llvm::to_vector(llvm::make_first_range(dims)),
             llvm::to_vector(llvm::make_first_range(dtypes))))
      text += (text.empty() ? "'" : ", '") + name.str() + "'";
    return text.empty() ? "none" : text;
  }
};

class SpecializePass : public mlafix::impl::SpecializePassBase<SpecializePass> {
public:
  using SpecializePassBase::SpecializePassBase;
  void runOnOperation() override;

private:
  Names collectNames(KernelOp kernel);
  LogicalResult bind(KernelOp kernel, Names &names);
  LogicalResult bindOne(KernelOp kernel, Names &names, StringRef name,
                        StringRef value);
};
} // namespace

/// The upper-case dims that are still dynamic and the dtype variables not yet
/// bound.
Names SpecializePass::collectNames(KernelOp kernel) {
  Names names;
  DictionaryAttr bound = kernel.getBindings().value_or(DictionaryAttr());
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    auto memref = dyn_cast<MemRefType>(type);
    if (!memref)
      continue;
    for (auto [position, attr] : llvm::enumerate(kernel.getArgDims(index))) {
      StringRef name = cast<StringAttr>(attr).getValue();
      if (!name.empty() && llvm::isUpper(name.front()) &&
          memref.isDynamicDim(position))
        names.dims.insert({name, ShapedType::kDynamic});
    }
    if (auto name = kernel.getArgAttrOfType<StringAttr>(index, kDTypeAttr))
      if (!bound || !bound.contains(name.getValue()))
        names.dtypes.insert({name.getValue(), Type()});
  }
  return names;
}

LogicalResult SpecializePass::bindOne(KernelOp kernel, Names &names,
                                      StringRef name, StringRef value) {
  if (auto dim = names.dims.find(name); dim != names.dims.end()) {
    int64_t size;
    if (value.getAsInteger(10, size) || size < 1)
      return kernel.emitError() << "expected a positive integer for dim '"
                                << name << "', got '" << value << "'";
    dim->second = size;
    return success();
  }
  if (auto dtype = names.dtypes.find(name); dtype != names.dtypes.end()) {
    Type type = getDTypeByName(&getContext(), value);
    if (!type)
      return kernel.emitError()
             << "expected one of " << listDTypes() << " for dtype '" << name
             << "', got '" << value << "'";
    dtype->second = type;
    return success();
  }
  return kernel.emitError()
         << "expected a name of kernel '" << kernel.getSymName()
         << "' to bind (" << names.list() << "), got '" << name << "'";
}

LogicalResult SpecializePass::bind(KernelOp kernel, Names &names) {
  for (const std::string &binding : bindings) {
    auto [name, value] = StringRef(binding).split('=');
    if (name.empty() || value.empty())
      return kernel.emitError()
             << "expected a binding NAME=VALUE, got '" << binding << "'";
    if (failed(bindOne(kernel, names, name.trim(), value.trim())))
      return failure();
  }
  for (auto [name, size] : names.dims)
    if (ShapedType::isDynamic(size))
      return kernel.emitError()
             << "expected a size for dim '" << name << "' of kernel '"
             << kernel.getSymName() << "', got no binding of it";
  for (auto [name, type] : names.dtypes)
    if (!type)
      return kernel.emitError()
             << "expected a dtype for '" << name << "' of kernel '"
             << kernel.getSymName() << "', got no binding of it";
  return success();
}

/// `memref` with its names replaced.
static FailureOr<MemRefType> bindMemRef(KernelOp kernel, unsigned index,
                                        MemRefType memref, const Names &names) {
  SmallVector<int64_t> shape(memref.getShape());
  for (auto [position, attr] : llvm::enumerate(kernel.getArgDims(index)))
    if (auto it = names.dims.find(cast<StringAttr>(attr).getValue());
        it != names.dims.end())
      shape[position] = it->second;
  Type element = memref.getElementType();
  if (auto name = kernel.getArgAttrOfType<StringAttr>(index, kDTypeAttr))
    if (auto it = names.dtypes.find(name.getValue());
        it != names.dtypes.end()) {
      if (getComputeType(it->second) != getComputeType(element))
        return kernel.emitError()
               << "expected a dtype that is " << getComputeType(element)
               << " in the body for '" << name.getValue() << "', got "
               << getDTypeName(it->second);
      element = it->second;
    }
  return MemRefType::get(shape, element, memref.getLayout(),
                         memref.getMemorySpace());
}

static LogicalResult replaceNames(KernelOp kernel, const Names &names) {
  SmallVector<Type> types(kernel.getArgumentTypes());
  for (auto [index, type] : llvm::enumerate(types)) {
    auto memref = dyn_cast<MemRefType>(type);
    if (!memref)
      continue;
    FailureOr<MemRefType> bound = bindMemRef(kernel, index, memref, names);
    if (failed(bound))
      return failure();
    type = *bound;
    kernel.getBody().getArgument(index).setType(type);
  }
  Builder b(kernel.getContext());
  kernel.setFunctionType(b.getFunctionType(types, {}));

  auto bindDim = [&](DimAttr dim) {
    auto it = names.dims.find(dim.getName());
    return it == names.dims.end() ? dim
                                  : DimAttr::get(dim.getContext(), it->second);
  };
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [&](DimAttr dim) -> std::optional<Attribute> { return bindDim(dim); });
  replacer.addReplacement([&](RankedTensorType type) -> std::optional<Type> {
    if (!isRowTile(type))
      return std::nullopt;
    return getRowTileType(bindDim(getTileDim(type)), type.getElementType());
  });
  kernel->walk([&](Operation *op) {
    replacer.replaceElementsIn(op, /*replaceAttrs=*/true, false,
                               /*replaceTypes=*/true);
  });

  SmallVector<NamedAttribute> bindings;
  if (DictionaryAttr previous = kernel.getBindings().value_or(DictionaryAttr()))
    llvm::append_range(bindings, previous);
  for (auto [name, size] : names.dims)
    bindings.push_back(b.getNamedAttr(name, b.getI64IntegerAttr(size)));
  for (auto [name, type] : names.dtypes)
    bindings.push_back(
        b.getNamedAttr(name, b.getStringAttr(getDTypeName(type))));
  kernel.setBindingsAttr(b.getDictionaryAttr(bindings));
  return success();
}

void SpecializePass::runOnOperation() {
  for (KernelOp kernel : getOperation().getOps<KernelOp>()) {
    Names names = collectNames(kernel);
    if (failed(bind(kernel, names)) || failed(replaceNames(kernel, names)))
      return signalPassFailure();
  }
}
