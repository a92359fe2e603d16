//===- KernelBuilder.cpp - handles, the finished kernel -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Frontend/BuilderImpl.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlafix;

using Impl = KernelBuilder::Impl;

//===----------------------------------------------------------------------===//
// Types and handles
//===----------------------------------------------------------------------===//

std::string ValueType::str() const {
  switch (kind) {
  case Kind::None:
    return "nothing";
  case Kind::Scalar:
    return dtype;
  case Kind::Row:
    return "a row of " + dtype + " along " + dim;
  case Kind::State:
    return "a state along " + dim + " in base " + base +
           (sink ? " with a sink" : "");
  case Kind::Tensor:
    return "a tensor of " + dtype + " (" + llvm::join(dims, ", ") + ")";
  }
  return "";
}

Impl::Impl(std::string_view name, const SourceLocation &location)
    : collector(context.get(), diagnostics, /*forward=*/false),
      builder(context.get()) {
  Location loc = at(location);
  module = ModuleOp::create(loc);
  OperationState state(loc, KernelOp::getOperationName());
  Builder &b = builder;
  state.addAttribute("sym_name", b.getStringAttr(llvm::StringRef(name)));
  state.addAttribute("function_type", TypeAttr::get(b.getFunctionType({}, {})));
  state.addAttribute("arg_names", b.getArrayAttr({}));
  state.addRegion()->emplaceBlock();
  builder.setInsertionPointToEnd(module->getBody());
  kernel = cast<KernelOp>(builder.create(state));
  builder.setInsertionPointToEnd(&kernel.getBody().front());
  ReturnOp::create(builder, loc);
  builder.setInsertionPoint(kernel.getBody().front().getTerminator());
  frames.push_back({Frame::Top, kernel});
}

KernelBuilder::Value Impl::wrap(mlir::Value value, bool isUnsigned) {
  KernelBuilder::Value handle;
  if (!value)
    return handle;
  values.push_back({value, isUnsigned});
  handle.id = values.size();
  return handle;
}

KernelBuilder::Values Impl::wrapAll(ValueRange range) {
  Values result;
  for (mlir::Value value : range)
    result.push_back(wrap(value));
  return result;
}

SmallVector<mlir::Value> Impl::getAll(const Values &list) const {
  return llvm::map_to_vector(list, [&](Value value) { return get(value); });
}

static std::string spellScalar(Type type) { return getDTypeName(type).str(); }

ValueType Impl::type(Value handle) const {
  ValueType result;
  mlir::Value value = get(handle);
  if (!value)
    return result;
  Type type = value.getType();
  if (auto state = dyn_cast<StateType>(type)) {
    result.kind = ValueType::Kind::State;
    result.dim = state.getDim().getText();
    result.base = state.getBase().getValue().str();
    result.sink = state.getSink();
  } else if (auto memref = dyn_cast<MemRefType>(type)) {
    result.kind = ValueType::Kind::Tensor;
    result.dtype = getDTypeName(memref.getElementType()).str();
    unsigned number = cast<BlockArgument>(value).getArgNumber();
    ArrayAttr names = KernelOp(kernel).getArgDims(number);
    for (StringAttr name : names.getAsRange<StringAttr>())
      result.dims.push_back(name.str());
  } else if (isRowTile(type)) {
    result.kind = ValueType::Kind::Row;
    result.dtype = spellScalar(getElementTypeOrSelf(type));
    result.dim = getTileDim(type).getText();
  } else {
    result.kind = ValueType::Kind::Scalar;
    result.dtype = spellScalar(type);
  }
  if (isUnsigned(handle))
    result.dtype = "u8";
  return result;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

bool Impl::checkUnfinished(const SourceLocation &location) {
  if (finished)
    fail(location) << "expected nothing after the kernel is finished";
  return !finished;
}

bool Impl::checkOpen(const SourceLocation &location, bool inGrid) {
  if (!checkUnfinished(location))
    return false;
  bool isIn = frames.back().kind != Frame::Top;
  if (isIn == inGrid)
    return true;
  fail(location) << (inGrid ? "expected a grid around this, got the top of the "
                              "kernel"
                            : "expected this before the grid, got it inside");
  return false;
}

bool Impl::checkVisible(Value value, const char *what,
                        const SourceLocation &location) {
  mlir::Value inner = get(value);
  if (!inner) {
    fail(location) << "expected a value for the " << what << ", got none";
    return false;
  }
  Region *here = builder.getInsertionBlock()->getParent();
  if (inner.getParentRegion()->isAncestor(here))
    return true;
  fail(location) << "expected a value of this part of the kernel for the "
                 << what << ", got one of a loop, branch or grid that ended";
  return false;
}

bool Impl::checkVisible(const Values &list, const char *what,
                        const SourceLocation &location) {
  return llvm::all_of(
      list, [&](Value value) { return checkVisible(value, what, location); });
}

bool Impl::checkCondition(Value value, const char *what,
                          const SourceLocation &location) {
  if (!checkVisible(value, what, location))
    return false;
  if (get(value).getType().isInteger(1))
    return true;
  fail(location) << "expected a bool for the " << what << ", got "
                 << spell(value);
  return false;
}

bool Impl::checkTensor(Value value, const char *what,
                       const SourceLocation &location) {
  if (!checkVisible(value, what, location))
    return false;
  if (isa<MemRefType>(get(value).getType()))
    return true;
  fail(location) << "expected a tensor for the " << what << ", got "
                 << spell(value);
  return false;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// Keeps the kernel's type and attributes as its arguments are.
void Impl::refreshSignature() {
  Builder b(context.get());
  Block &entry = kernel.getBody().front();
  kernel.setFunctionType(b.getFunctionType(entry.getArgumentTypes(), {}));
  kernel.setArgNamesAttr(b.getArrayAttr(argNames));
  kernel.setArgAttrsAttr(b.getArrayAttr(argAttrs));
}

bool KernelBuilder::setDefault(std::string_view name, std::string_view value,
                               const SourceLocation &location) {
  if (!impl->checkUnfinished(location))
    return false;
  Builder b(impl->context.get());
  NamedAttrList defaults(
      impl->kernel.getDefaults().value_or(b.getDictionaryAttr({})));
  auto isHere = [&](llvm::StringRef dim) { return Factors::has(dim, name); };
  auto isDim = [&](unsigned index) {
    ArrayAttr dims = impl->kernel.getArgDims(index);
    return dims && llvm::any_of(dims.getAsValueRange<StringAttr>(), isHere);
  };
  Attribute attribute = b.getStringAttr(llvm::StringRef(value));
  int64_t size;
  if (llvm::any_of(llvm::seq(impl->kernel.getNumArguments()), isDim) &&
      !llvm::StringRef(value).getAsInteger(10, size))
    attribute = b.getI64IntegerAttr(size);
  defaults.set(llvm::StringRef(name), attribute);
  impl->kernel.setDefaultsAttr(defaults.getDictionary(b.getContext()));
  return true;
}

KernelBuilder::Value KernelBuilder::dim(Value tensor, unsigned position,
                                        const SourceLocation &location) {
  if (!impl->checkTensor(tensor, "tensor of a dim", location))
    return {};
  if (position >= impl->rank(tensor)) {
    impl->fail(location) << "expected a dim below " << impl->rank(tensor)
                         << ", got " << position;
    return {};
  }
  mlir::Value memref = impl->get(tensor);
  mlir::Value &known = impl->dims[{memref, position}];
  if (!known) {
    OpBuilder::InsertionGuard guard(impl->builder);
    if (impl->grid)
      impl->builder.setInsertionPoint(impl->grid);
    auto index = impl->make<arith::ConstantIndexOp>(location, position);
    known = impl->make<memref::DimOp>(location, memref, index);
  }
  return impl->wrap(known);
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

KernelBuilder::KernelBuilder(std::string_view name,
                             const SourceLocation &location)
    : impl(std::make_unique<Impl>(name, location)) {}
KernelBuilder::~KernelBuilder() = default;
KernelBuilder::KernelBuilder(KernelBuilder &&) noexcept = default;
KernelBuilder &KernelBuilder::operator=(KernelBuilder &&) noexcept = default;

ValueType KernelBuilder::type(Value value) const { return impl->type(value); }

const std::vector<mlafix::Diagnostic> &KernelBuilder::diagnostics() const {
  return impl->diagnostics;
}

std::string KernelBuilder::finish() {
  SourceLocation location = toSourceLocation(impl->kernel.getLoc());
  if (!impl->checkOpen(location, /*inGrid=*/false))
    return {};
  impl->finished = true;
  impl->settleGroupRows();
  if (failed(verify(*impl->module)))
    return {};
  std::string text;
  llvm::raw_string_ostream stream(text);
  impl->module->print(stream, OpPrintingFlags().enableDebugInfo(
                                  /*enable=*/true, /*prettyForm=*/false));
  return text;
}
