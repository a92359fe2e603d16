//===- BuilderAccesses.cpp - loads, stores, states ------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Frontend/BuilderImpl.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlafix;
using Impl = KernelBuilder::Impl;
using Kind = ValueType::Kind;

unsigned Impl::rank(Value tensor) const {
  return cast<MemRefType>(get(tensor).getType()).getRank();
}

DimAttr Impl::rowDim(Value tensor, const SourceLocation &location) {
  DimAttr dim = getLastDim(get(tensor));
  if (!dim)
    fail(location)
        << "expected a tensor whose last dim has a name to take rows "
           "of, got "
        << spell(tensor);
  return dim;
}

DimAttr Impl::dimOf(std::string_view name) {
  if (std::optional<Factors> factors = Factors::of(name);
      factors && factors->isValid())
    return factors->getDim(context.get());
  int64_t size;
  if (!llvm::StringRef(name).getAsInteger(10, size) && size > 0)
    return DimAttr::get(context.get(), size);
  Block &entry = KernelOp(kernel).getBody().front();
  for (BlockArgument argument : entry.getArguments()) {
    ArrayAttr dims = KernelOp(kernel).getArgDims(argument.getArgNumber());
    if (!dims)
      continue;
    for (auto [position, dim] : llvm::enumerate(dims.getAsRange<StringAttr>()))
      if (dim.getValue() == llvm::StringRef(name))
        return getArgumentDim(argument, position);
  }
  return DimAttr::get(context.get(), llvm::StringRef(name));
}

bool Impl::setBounds(const TensorArgument &argument,
                     const SourceLocation &location) {
  Builder b(context.get());
  NamedAttrList bounds(kernel.getMost().value_or(b.getDictionaryAttr({})));
  for (auto [dim, bound] : llvm::zip(argument.dims, argument.bounds)) {
    if (bound == 0)
      continue;
    std::optional<int64_t> known = kernel.getMostOf(dim);
    if (known && *known != bound)
      return fail(location)
             << "expected one bound of dim '" << dim
             << "' in all arguments, got " << *known << " and " << bound;
    bounds.set(dim, b.getI64IntegerAttr(bound));
  }
  if (!bounds.empty())
    kernel.setMostAttr(bounds.getDictionary(b.getContext()));
  return true;
}

/// Returns true if the tensor, the indices and the optional predicate of an
/// access are valid; otherwise reports an error.
static bool checkAccess(Impl &impl, const KernelBuilder::Access &place,
                        const char *what, const SourceLocation &location) {
  return impl.checkOpen(location) &&
         impl.checkTensor(place.tensor, what, location) &&
         impl.checkIndices(place.indices, "indices", location) &&
         (!place.predicate ||
          impl.checkCondition(place.predicate, "predicate", location));
}

/// Returns true if the group and member indices of an access to a part of a row
/// are valid; otherwise reports an error.
static bool checkPart(Impl &impl, const KernelBuilder::Access &place,
                      const SourceLocation &location) {
  KernelBuilder::Values indices;
  for (KernelBuilder::Value index : {place.part.group, place.part.member})
    if (index)
      indices.push_back(index);
  if (indices.empty())
    return true;
  if (!impl.checkIndices(indices, "indices", location))
    return false;
  DimAttr dim = impl.rowDim(place.tensor, location);
  if (dim && !dim.isProduct())
    impl.fail(location)
        << "expected a tensor whose last dim is a product, as \"(G K)\", to "
           "take a group or a member of a row, got rows along "
        << dim.getText();
  return dim && dim.isProduct();
}

/// Returns true if the access is to a row, or to a group, a member or a slice
/// of a row, which are rows as well. Returns false if it is to an element.
static bool isRow(Impl &impl, const KernelBuilder::Access &place) {
  return place.indices.size() + 1 == impl.rank(place.tensor) &&
         !(place.part.group && place.part.member);
}

/// Returns `end`, the begin or end of a slice, as an attribute. Returns null if
/// `part` is no slice.
static IntegerAttr endOf(Impl &impl, const KernelBuilder::Part &part,
                         int64_t end) {
  return part.end ? impl.builder.getI64IntegerAttr(end) : IntegerAttr();
}

/// Returns the dim of the accessed row or part. If the last dim of the tensor
/// has no name, reports an error and returns null.
static DimAttr getAccessDim(Impl &impl, const KernelBuilder::Access &place,
                            const SourceLocation &location) {
  DimAttr dim = impl.rowDim(place.tensor, location);
  const KernelBuilder::Part &part = place.part;
  if (!dim)
    return {};
  if (part.end > part.begin)
    return DimAttr::get(impl.context.get(), part.end - part.begin);
  return part.group ? dim.getGroup() : part.member ? dim.getGroups() : dim;
}

//===----------------------------------------------------------------------===//
// Rows and scalars
//===----------------------------------------------------------------------===//

/// Returns the type of loaded elements. `dtype`, if not empty, is the integer
/// type to which the elements are widened. If they cannot be widened to
/// `dtype`, reports an error and returns null.
static Type getLoadedType(Impl &impl, const KernelBuilder::Access &place,
                          std::string_view dtype,
                          const SourceLocation &location) {
  auto memref = cast<MemRefType>(impl.get(place.tensor).getType());
  Type type = getComputeType(memref.getElementType());
  bool widens = dtype == "i32" || dtype == "i64";
  if (widens && !type.isInteger(1) && type.isInteger())
    type = impl.builder.getIntegerType(dtype == "i32" ? 32 : 64);
  if (dtype.empty() || getDTypeName(type) == llvm::StringRef(dtype) ||
      dtype == "u8")
    return type;
  return impl.fail(location)
         << "expected " << getDTypeName(type) << " as the dtype of a load from "
         << impl.spell(place.tensor) << ", got '" << dtype
         << "'; only integers widen, to i32 or i64";
}

/// Returns true if the loaded elements, of type `loaded`, are unsigned bytes.
static bool isUnsigned(Impl &impl, const KernelBuilder::Access &place,
                       Type loaded) {
  auto memref = cast<MemRefType>(impl.get(place.tensor).getType());
  return memref.getElementType().isUnsignedInteger() &&
         getElementTypeOrSelf(loaded).isInteger(8);
}

KernelBuilder::Value KernelBuilder::load(const Access &place,
                                         const SourceLocation &location,
                                         Value other, std::string_view dtype) {
  if (!checkAccess(*impl, place, "tensor", location) ||
      !checkPart(*impl, place, location) ||
      (other && !impl->checkVisible(other, "value instead", location)))
    return {};
  Type type = getLoadedType(*impl, place, dtype, location);
  if (!type)
    return {};
  if (isRow(*impl, place)) {
    DimAttr dim = getAccessDim(*impl, place, location);
    if (!dim)
      return {};
    type = getRowTileType(dim, type);
    impl->useRows(place.tensor, place.part.end != 0);
  }
  if (other && impl->get(other).getType() != getElementTypeOrSelf(type))
    return impl->fail(location)
           << "expected " << getDTypeName(getElementTypeOrSelf(type))
           << " for 'otherwise', got " << impl->spell(other);
  auto load = impl->make<LoadOp>(
      location, type, impl->get(place.tensor), impl->getAll(place.indices),
      impl->get(place.predicate), impl->get(other), impl->get(place.part.group),
      impl->get(place.part.member), endOf(*impl, place.part, place.part.begin),
      endOf(*impl, place.part, place.part.end));
  return load ? impl->wrap(load, isUnsigned(*impl, place, type)) : Value();
}

KernelBuilder::Value KernelBuilder::loadInto(
    const Access &place, std::string_view dim, std::int64_t first,
    std::int64_t each, const SourceLocation &location, std::string_view dtype) {
  if (!checkAccess(*impl, place, "tensor", location))
    return {};
  if (!isRow(*impl, place) || dim.empty() || place.part.group ||
      place.part.member)
    return impl->fail(location)
           << "expected a whole row to read into another dim, and that dim, "
              "got "
           << (dim.empty() ? "no dim" : "a part or an element");
  Type type = getLoadedType(*impl, place, dtype, location);
  if (!type)
    return {};
  impl->useRows(place.tensor, place.part.end != 0);
  auto load = impl->make<LoadIntoOp>(
      location, getRowTileType(impl->dimOf(dim), type), impl->get(place.tensor),
      impl->getAll(place.indices), first, each, impl->get(place.predicate),
      endOf(*impl, place.part, place.part.begin),
      endOf(*impl, place.part, place.part.end));
  return load ? impl->wrap(load, isUnsigned(*impl, place, type)) : Value();
}

bool KernelBuilder::store(Value value, const Access &place,
                          const SourceLocation &location) {
  if (!checkAccess(*impl, place, "tensor", location) ||
      !checkPart(*impl, place, location) ||
      !impl->checkVisible(value, "value", location))
    return false;
  ValueType type = impl->type(value);
  if (type.kind != Kind::Scalar && type.kind != Kind::Row)
    return impl->fail(location)
           << "expected a scalar or a row to store, got " << type.str();
  mlir::Value stored = impl->get(value);
  DimAttr dim; // null if an element is stored
  if (isRow(*impl, place)) {
    dim = getAccessDim(*impl, place, location);
    if (!dim)
      return false;
    Type row = getRowTileType(dim, getElementTypeOrSelf(stored.getType()));
    bool isOfGroups = type.kind == Kind::Row && dim.isProduct() &&
                      getTileDim(stored.getType()) == dim.getGroups();
    if (type.kind == Kind::Scalar)
      stored = impl->make<SplatOp>(location, row, stored);
    else if (isOfGroups)
      stored = impl->make<BroadcastOp>(location, row, stored);
  }
  if (!stored)
    return false;
  if (dim)
    impl->useRows(place.tensor, place.part.end != 0);
  return static_cast<bool>(impl->make<StoreOp>(
      location, stored, impl->get(place.tensor), impl->getAll(place.indices),
      impl->get(place.predicate), impl->get(place.part.group),
      impl->get(place.part.member), endOf(*impl, place.part, place.part.begin),
      endOf(*impl, place.part, place.part.end)));
}

KernelBuilder::Value KernelBuilder::present(Value tensor,
                                            const SourceLocation &location) {
  if (!impl->checkOpen(location) ||
      !impl->checkTensor(tensor, "tensor", location))
    return {};
  return impl->wrap(impl->make<PresentOp>(location, impl->builder.getI1Type(),
                                          impl->get(tensor)));
}

bool KernelBuilder::exchange(const SourceLocation &location) {
  return impl->checkOpen(location) && impl->make<ExchangeOp>(location);
}

KernelBuilder::Value KernelBuilder::turn(const SourceLocation &location) {
  if (!impl->checkOpen(location))
    return {};
  return impl->wrap(impl->make<TurnOp>(location, impl->builder.getIndexType()));
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

/// Parses the base of an lse. Reports an error and returns null if `text` is
/// not a base.
static BaseAttr parseBase(Impl &impl, std::string_view text,
                          const SourceLocation &location) {
  if (text == "e" || text == "2" || isConstantName(text))
    return BaseAttr::get(impl.context.get(), llvm::StringRef(text));
  return impl.fail(location)
         << "expected base e, 2 or an upper-case name, got '" << text << "'";
}

static KernelBuilder::Access
payloadOf(const KernelBuilder::StateAccess &place) {
  return {place.out, place.outIndices, place.predicate};
}

static bool checkStates(Impl &impl, const KernelBuilder::Values &states,
                        const SourceLocation &location) {
  if (!impl.checkOpen(location) ||
      !impl.checkVisible(states, "state", location))
    return false;
  for (KernelBuilder::Value state : states)
    if (!isa<StateType>(impl.get(state).getType()))
      return impl.fail(location)
             << "expected a state, got " << impl.spell(state);
  return true;
}

/// Returns true if `value` is a scalar f32; otherwise reports an error.
static bool checkScalar(Impl &impl, KernelBuilder::Value value,
                        const char *what, const SourceLocation &location) {
  if (!impl.checkVisible(value, what, location))
    return false;
  if (impl.get(value).getType().isF32())
    return true;
  return impl.fail(location)
         << "expected f32 for the " << what << ", got " << impl.spell(value);
}

KernelBuilder::Value KernelBuilder::identity(std::string_view dim,
                                             std::string_view base,
                                             const SourceLocation &location) {
  if (!impl->checkOpen(location))
    return {};
  if (dim.empty())
    return impl->fail(location)
           << "expected the name of a dim for an identity, got none";
  BaseAttr parsed = parseBase(*impl, base, location);
  if (!parsed)
    return {};
  auto type = StateType::get(impl->context.get(), impl->dimOf(dim), parsed);
  return impl->wrap(impl->make<IdentityOp>(location, type));
}

KernelBuilder::Value KernelBuilder::loadState(const StateAccess &place,
                                              std::string_view base, bool sink,
                                              const SourceLocation &location) {
  if (!checkAccess(*impl, payloadOf(place), "payload", location) ||
      !checkAccess(*impl, {place.lse, place.lseIndices}, "lse", location))
    return {};
  BaseAttr parsed = parseBase(*impl, base, location);
  DimAttr dim = parsed ? impl->rowDim(place.out, location) : DimAttr();
  if (!dim)
    return {};
  impl->useRows(place.out);
  auto type = StateType::get(impl->context.get(), dim, parsed, sink);
  return impl->wrap(impl->make<LoadStateOp>(
      location, type, impl->get(place.out), impl->getAll(place.outIndices),
      impl->get(place.lse), impl->getAll(place.lseIndices),
      impl->get(place.predicate)));
}

KernelBuilder::Value KernelBuilder::makeState(Value row, Value lse,
                                              std::string_view base, bool sink,
                                              const SourceLocation &location) {
  if (!impl->checkOpen(location) || !impl->checkVisible(row, "row", location) ||
      !checkScalar(*impl, lse, "lse", location))
    return {};
  mlir::Value payload = impl->get(row);
  if (!isRowTile(payload.getType()) ||
      !getElementTypeOrSelf(payload.getType()).isF32())
    return impl->fail(location)
           << "expected a row of f32 for a state, got " << impl->spell(row);
  BaseAttr parsed = parseBase(*impl, base, location);
  if (!parsed)
    return {};
  auto type = StateType::get(impl->context.get(), getTileDim(payload.getType()),
                             parsed, sink);
  return impl->wrap(
      impl->make<MakeStateOp>(location, type, payload, impl->get(lse)));
}

bool KernelBuilder::storeState(Value state, const StateAccess &place,
                               Value scale, const SourceLocation &location) {
  if (scale && !checkScalar(*impl, scale, "scale", location))
    return false;
  Access lse = {place.lse, place.lseIndices, place.predicate};
  if (!checkStates(*impl, {state}, location) ||
      (place.out &&
       !checkAccess(*impl, payloadOf(place), "payload", location)) ||
      (place.lse && !checkAccess(*impl, lse, "lse", location)))
    return false;
  if (place.out)
    impl->useRows(place.out);
  return static_cast<bool>(impl->make<StoreStateOp>(
      location, impl->get(state), impl->get(place.out),
      impl->getAll(place.outIndices), impl->get(place.lse),
      impl->getAll(place.lseIndices), impl->get(place.predicate),
      impl->get(scale)));
}

KernelBuilder::Value KernelBuilder::merge(const Values &states,
                                          const SourceLocation &location) {
  if (!checkStates(*impl, states, location))
    return {};
  if (states.empty())
    return impl->fail(location)
           << "expected at least one state to merge, got none";
  auto type = cast<StateType>(impl->get(states.front()).getType());
  unsigned sinks = 0;
  for (Value state : states) {
    auto other = cast<StateType>(impl->get(state).getType());
    if (other.withSink(false) != type.withSink(false))
      return impl->fail(location)
             << "expected states of one dim and base (N8), got "
             << impl->spell(states.front()) << " and " << impl->spell(state);
    sinks += other.getSink();
  }
  if (sinks > 1)
    return impl->fail(location)
           << "expected at most one state with a sink, which counts once, got "
           << sinks;
  return impl->wrap(impl->make<MergeOp>(location, type.withSink(sinks),
                                        impl->getAll(states)));
}

KernelBuilder::Value KernelBuilder::mask(Value state, Value predicate,
                                         const SourceLocation &location) {
  if (!checkStates(*impl, {state}, location) ||
      !impl->checkCondition(predicate, "predicate", location))
    return {};
  return impl->wrap(
      impl->make<MaskOp>(location, impl->get(state), impl->get(predicate)));
}

KernelBuilder::Value KernelBuilder::rebase(Value state, std::string_view base,
                                           const SourceLocation &location) {
  if (!checkStates(*impl, {state}, location))
    return {};
  BaseAttr parsed = parseBase(*impl, base, location);
  if (!parsed)
    return {};
  auto from = cast<StateType>(impl->get(state).getType());
  auto to = StateType::get(impl->context.get(), from.getDim(), parsed,
                           from.getSink());
  return impl->wrap(impl->make<RebaseOp>(location, to, impl->get(state)));
}

KernelBuilder::Value KernelBuilder::payload(Value state,
                                            const SourceLocation &location) {
  if (!checkStates(*impl, {state}, location))
    return {};
  auto type = cast<StateType>(impl->get(state).getType());
  return impl->wrap(
      impl->make<PayloadOp>(location, type.getTileType(), impl->get(state)));
}

KernelBuilder::Value KernelBuilder::lseOf(Value state,
                                          const SourceLocation &location) {
  if (!checkStates(*impl, {state}, location))
    return {};
  return impl->wrap(impl->make<LseOfOp>(location, impl->builder.getF32Type(),
                                        impl->get(state)));
}

//===----------------------------------------------------------------------===//
// Strides of rows
//===----------------------------------------------------------------------===//

/// Gives the last dim of `tensor` the stride 1.
static void setUnitStride(mlir::Value tensor) {
  auto type = cast<MemRefType>(tensor.getType());
  auto layout = cast<StridedLayoutAttr>(type.getLayout());
  SmallVector<int64_t> strides(layout.getStrides());
  strides.back() = 1;
  tensor.setType(
      MemRefType::get(type.getShape(), type.getElementType(),
                      StridedLayoutAttr::get(tensor.getContext(),
                                             layout.getOffset(), strides)));
}

void Impl::useRows(Value tensor, bool isSlice) {
  mlir::Value value = get(tensor);
  auto type = cast<MemRefType>(value.getType());
  if (type.getStridesAndOffset().first.back() == 1)
    return;
  if (!isSlice && getProductOf(kernel, getLastDim(value))) {
    groupRows.insert(value);
    return;
  }
  setUnitStride(value);
  refreshSignature();
}

void Impl::settleGroupRows() {
  if (groupRows.empty())
    return;
  DenseSet<DimAttr> dims;
  kernel->walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (isRowTile(type))
        dims.insert(getTileDim(type));
  });
  for (mlir::Value tensor : groupRows)
    if (!dims.contains(getProductOf(kernel, getLastDim(tensor))))
      setUnitStride(tensor);
  refreshSignature();
}
