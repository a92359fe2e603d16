//===- KernelBuilder.cpp - arguments, control flow, finished kernel -------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Frontend/BuilderImpl.h"
#include "lib/Plan/GivenPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"

using namespace mlir;
using namespace mlafix;
using Impl = KernelBuilder::Impl;
using Frame = Impl::Frame;

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

ValueType Impl::type(Value handle) const {
  ValueType result;
  mlir::Value value = get(handle);
  if (!value)
    return result;
  if (auto memref = dyn_cast<MemRefType>(value.getType())) {
    result.kind = ValueType::Kind::Tensor;
    result.dtype = getDTypeName(memref.getElementType()).str();
    unsigned number = cast<BlockArgument>(value).getArgNumber();
    ArrayAttr names = KernelOp(kernel).getArgDims(number);
    for (StringAttr name : names.getAsRange<StringAttr>())
      result.dims.push_back(name.str());
  } else {
    result = typeOf(value.getType());
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
    fail(location) << "expected no more calls for a finished kernel, got one";
  return !finished;
}

bool Impl::checkOpen(const SourceLocation &location, bool inGrid) {
  if (!checkUnfinished(location))
    return false;
  bool isIn = frames.back().kind != Frame::Top;
  if (isIn == inGrid)
    return true;
  return fail(location)
         << (inGrid ? "expected a grid around this, as 'for t in "
                      "grid(\"n\"):', got the top of the kernel"
                    : "expected this before the grid, got it inside");
}

bool Impl::checkVisible(Value value, const char *what,
                        const SourceLocation &location) {
  mlir::Value inner = get(value);
  if (!inner)
    return fail(location) << "expected a value for the " << what
                          << ", got none";
  Region *here = builder.getInsertionBlock()->getParent();
  if (inner.getParentRegion()->isAncestor(here))
    return true;
  return fail(location)
         << "expected a value of this part of the kernel for the " << what
         << ", got one of a loop, branch or grid that ended";
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
  return fail(location) << "expected a bool for the " << what << ", got "
                        << spell(value);
}

bool Impl::checkIndices(const Values &list, const char *what,
                        const SourceLocation &location) {
  if (!checkVisible(list, what, location))
    return false;
  for (Value value : list)
    if (!get(value).getType().isIndex())
      return fail(location)
             << "expected " << what << " of type index, got " << spell(value);
  return true;
}

bool Impl::checkTensor(Value value, const char *what,
                       const SourceLocation &location) {
  if (!checkVisible(value, what, location))
    return false;
  if (isa<MemRefType>(get(value).getType()))
    return true;
  return fail(location) << "expected a tensor for the " << what << ", got "
                        << spell(value);
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// Updates the kernel's type and attributes to its current arguments.
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
  if (position >= impl->rank(tensor))
    return impl->fail(location) << "expected a dim below " << impl->rank(tensor)
                                << ", got " << position;
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

//===----------------------------------------------------------------------===//
// Declarations of arguments
//===----------------------------------------------------------------------===//

static bool isName(llvm::StringRef text) {
  return !text.empty() && !llvm::isDigit(text.front()) &&
         llvm::all_of(text,
                      [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

/// Parses the fill value of an argument, for `mlafix.fill`. Returns null if
/// `text` is neither a number nor "identity".
static Attribute parseFill(Builder &b, Type element, llvm::StringRef text) {
  if (text == kIdentity)
    return b.getStringAttr(text);
  if (!isa<FloatType>(element)) {
    int64_t integer;
    return text.getAsInteger(10, integer) ? Attribute()
                                          : b.getI64IntegerAttr(integer);
  }
  APFloat number(APFloat::IEEEsingle());
  llvm::Expected<APFloat::opStatus> status =
      number.convertFromString(text, APFloat::rmNearestTiesToEven);
  if (!status) {
    llvm::consumeError(status.takeError());
    return {};
  }
  return b.getFloatAttr(b.getF32Type(), number);
}

/// Sets the size of each dim that is a product of two numbers, such as "(4
/// 128)".
static void bindNumbers(MLIRContext *context,
                        const std::vector<std::string> &dims,
                        SmallVector<int64_t> &shape) {
  for (auto [dim, size] : llvm::zip(dims, shape))
    if (std::optional<Factors> factors = Factors::of(dim);
        factors && factors->isValid())
      size = factors->getDim(context).getSize();
}

/// Returns the attributes of a tensor argument, except its fill.
static NamedAttrList getAttributes(Builder &b, const TensorArgument &argument) {
  NamedAttrList attributes;
  attributes.set(
      kDimsAttr,
      b.getStrArrayAttr(llvm::to_vector_of<llvm::StringRef>(argument.dims)));
  if (!argument.dtypeName.empty())
    attributes.set(kDTypeAttr, b.getStringAttr(argument.dtypeName));
  attributes.set(kAccessAttr, b.getStringAttr(argument.access));
  if (argument.optional)
    attributes.set(kOptionalAttr, b.getUnitAttr());
  if (argument.peers)
    attributes.set(kPeersAttr, b.getUnitAttr());
  if (argument.most)
    attributes.set(kListAttr, b.getI64IntegerAttr(argument.most));
  if (!argument.swizzle.empty())
    attributes.set(kSwizzleAttr, b.getStringAttr(argument.swizzle));
  return attributes;
}

bool KernelBuilder::Impl::checkName(const std::string &name,
                                    const SourceLocation &location) {
  if (isName(name))
    return true;
  return fail(location)
         << "expected a name of letters, digits and _ for an argument, got '"
         << name << "'";
}

KernelBuilder::Value
KernelBuilder::Impl::addArgument(Type type, const std::string &name,
                                 const NamedAttrList &attributes,
                                 const SourceLocation &location) {
  mlir::Value value = kernel.getBody().front().addArgument(type, at(location));
  argNames.push_back(StringAttr::get(context.get(), name));
  argAttrs.push_back(attributes.getDictionary(context.get()));
  refreshSignature();
  return wrap(value);
}

KernelBuilder::Value KernelBuilder::addTensor(const TensorArgument &argument,
                                              const SourceLocation &location) {
  if (!impl->checkOpen(location, /*inGrid=*/false))
    return {};
  if (!impl->checkName(argument.name, location) ||
      !impl->setBounds(argument, location))
    return {};
  Type element = getDTypeByName(impl->context.get(), argument.dtype);
  if (!element || element.isIndex())
    return impl->fail(location)
           << "expected one of " << listDTypes() << " for the dtype of '"
           << argument.name << "', got '" << argument.dtype << "'";
  Builder b(impl->context.get());
  size_t rank = argument.dims.size();
  SmallVector<int64_t> shape(rank, ShapedType::kDynamic), strides(shape);
  for (size_t i = 0; i < std::min(rank, argument.sizes.size()); ++i)
    if (argument.sizes[i] > 0)
      shape[i] = argument.sizes[i];
  bindNumbers(b.getContext(), argument.dims, shape);
  // If the last dim has size 1, its stride does not matter, so make it 1. If
  // elements share a byte or lie in tiles, the last dim must have stride 1.
  bool hasUnits = sharesByte(element) || !argument.swizzle.empty();
  if (rank && (shape.back() == 1 || hasUnits))
    strides.back() = 1;
  auto layout =
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, strides);
  auto type = MemRefType::get(shape, element, layout);
  NamedAttrList attributes = getAttributes(b, argument);
  if (!argument.fill.empty()) {
    Attribute fill = parseFill(b, element, argument.fill);
    if (!fill)
      return impl->fail(location)
             << "expected a number or identity as the fill of '"
             << argument.name << "', got '" << argument.fill << "'";
    attributes.set(kFillAttr, fill);
  }
  return impl->addArgument(type, argument.name, attributes, location);
}

KernelBuilder::Value KernelBuilder::addScalar(const ScalarArgument &argument,
                                              const SourceLocation &location) {
  if (!impl->checkOpen(location, /*inGrid=*/false))
    return {};
  if (!impl->checkName(argument.name, location))
    return {};
  Builder b(impl->context.get());
  Type type = llvm::StringSwitch<Type>(argument.dtype)
                  .Case("index", b.getIndexType())
                  .Case("i64", b.getI64Type())
                  .Case("i32", b.getI32Type())
                  .Case("f32", b.getF32Type())
                  .Case("bool", b.getI1Type())
                  .Default({});
  if (!type)
    return impl->fail(location)
           << "expected index, i64, i32, f32 or bool for the scalar '"
           << argument.name << "', got '" << argument.dtype << "'";
  NamedAttrList attributes;
  if (!argument.atMost.empty())
    attributes.set(kAtMostAttr, b.getStringAttr(argument.atMost));
  return impl->addArgument(type, argument.name, attributes, location);
}

//===----------------------------------------------------------------------===//
// Promises
//===----------------------------------------------------------------------===//

bool KernelBuilder::proveBounds(const SourceLocation &location) {
  if (!impl->checkOpen(location, /*inGrid=*/false))
    return false;
  impl->kernel.setBounds("prove");
  return true;
}

bool KernelBuilder::allow(std::string_view kind,
                          const SourceLocation &location) {
  if (!impl->checkOpen(location, /*inGrid=*/false))
    return false;
  SmallVector<StringRef> kinds;
  if (std::optional<ArrayAttr> known = impl->kernel.getAllow())
    for (StringAttr one : known->getAsRange<StringAttr>())
      kinds.push_back(one.getValue());
  kinds.push_back(kind);
  impl->kernel.setAllowAttr(
      mlir::Builder(impl->kernel.getContext()).getStrArrayAttr(kinds));
  return true;
}

bool KernelBuilder::plan(std::string_view field,
                         const SourceLocation &location) {
  if (!impl->checkOpen(location, /*inGrid=*/false))
    return false;
  SmallVector<Attribute> fields;
  if (auto known = impl->kernel->getAttrOfType<ArrayAttr>(kGivenPlanAttr))
    llvm::append_range(fields, known);
  mlir::Builder b(impl->kernel.getContext());
  fields.push_back(b.getStringAttr(field));
  impl->kernel->setAttr(kGivenPlanAttr, b.getArrayAttr(fields));
  return true;
}

bool KernelBuilder::distinct(Value tensor, const SourceLocation &location) {
  return impl->checkOpen(location, /*inGrid=*/false) &&
         impl->checkTensor(tensor, "table", location) &&
         impl->make<DistinctOp>(location, impl->get(tensor));
}

bool KernelBuilder::assume(Value condition, std::string_view text,
                           const SourceLocation &location) {
  return impl->checkUnfinished(location) &&
         impl->checkCondition(condition, "assumption", location) &&
         impl->make<AssumeOp>(location, impl->get(condition),
                              llvm::StringRef(text));
}

bool KernelBuilder::print(std::string_view text, const Values &values,
                          const SourceLocation &location) {
  if (!impl->checkOpen(location) ||
      !impl->checkVisible(values, "value", location))
    return false;
  for (Value value : values) {
    ValueType::Kind kind = impl->type(value).kind;
    if (kind != ValueType::Kind::Scalar && kind != ValueType::Kind::Row &&
        kind != ValueType::Kind::State)
      return impl->fail(location)
             << "expected scalars, rows and states to print, got "
             << impl->spell(value);
  }
  return bool(impl->make<PrintOp>(location, llvm::StringRef(text),
                                  impl->getAll(values)));
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

bool Impl::closing(ArrayRef<Frame::Kind> kinds, const char *what,
                   const SourceLocation &location) {
  if (!finished && llvm::is_contained(kinds, frames.back().kind))
    return true;
  return fail(location) << "expected the end of " << frames.back().name()
                        << ", got that of " << what;
}

/// Returns true if a loop or branch can pass on `values`: all are scalars, rows
/// or states, and none is u8. Otherwise reports an error.
static bool checkCarried(Impl &impl, const KernelBuilder::Values &values,
                         const char *what, const SourceLocation &location) {
  if (!impl.checkVisible(values, what, location))
    return false;
  for (KernelBuilder::Value value : values) {
    ValueType type = impl.type(value);
    if (type.kind == ValueType::Kind::Tensor || type.dtype == "u8")
      return impl.fail(location) << "expected scalars, rows or states for the "
                                 << what << ", got " << type.str();
  }
  return true;
}

Type Impl::joinTypes(Type a, Type b) {
  auto state = dyn_cast<StateType>(a), other = dyn_cast<StateType>(b);
  if (a == b || !state || !other)
    return a == b ? a : Type();
  StateType joined = state.withSink(true);
  return other.withSink(true) == joined ? joined : Type();
}

mlir::Value Impl::widen(mlir::Value value, Type type, Location loc) {
  return value.getType() == type
             ? value
             : MergeOp::create(builder, loc, type, value).getResult();
}

/// Returns true if `values` have the types `expected` or can be widened to
/// them; otherwise reports an error.
static bool checkTypes(Impl &impl, const KernelBuilder::Values &values,
                       TypeRange expected, const char *what,
                       const SourceLocation &location) {
  if (values.size() != expected.size())
    return impl.fail(location)
           << "expected " << expected.size() << " values for the " << what
           << ", got " << values.size();
  for (auto [value, type] : llvm::zip(values, expected))
    if (Impl::joinTypes(impl.get(value).getType(), type) != type)
      return impl.fail(location)
             << "expected " << Impl::typeOf(type).str() << " for the " << what
             << ", as before, got " << impl.spell(value);
  return true;
}

/// Creates the yield of `values`, widened to `types`.
static void buildYield(Impl &impl, const KernelBuilder::Values &values,
                       TypeRange types, Location loc) {
  SmallVector<mlir::Value> yielded;
  for (auto [value, type] : llvm::zip(values, types))
    yielded.push_back(impl.widen(impl.get(value), type, loc));
  scf::YieldOp::create(impl.builder, loc, yielded);
}

//===----------------------------------------------------------------------===//
// Grids
//===----------------------------------------------------------------------===//

/// Returns true if a grid with these extents can begin; otherwise reports an
/// error.
static bool checkGrid(Impl &impl, const KernelBuilder::Values &extents,
                      const SourceLocation &location) {
  if (!impl.checkIndices(extents, "extents", location))
    return false;
  if (impl.grid)
    impl.fail(location) << "expected one grid in a kernel, got a second";
  return !impl.grid;
}

/// Adds a block to `region`, with `count` index arguments.
static Block *addGridRegion(Impl &impl, Region &region, size_t count,
                            Location loc) {
  Block *block = &region.emplaceBlock();
  for (size_t i = 0; i < count; ++i)
    block->addArgument(impl.builder.getIndexType(), loc);
  return block;
}

KernelBuilder::Values
KernelBuilder::beginForall(const Values &extents,
                           const SourceLocation &location) {
  if (!impl->checkOpen(location, /*inGrid=*/false) ||
      !checkGrid(*impl, extents, location))
    return {};
  if (extents.empty())
    return impl->fail(location) << "expected at least one extent, got none";
  Location loc = impl->at(location);
  OperationState state(loc, ForallOp::getOperationName());
  state.addOperands(impl->getAll(extents));
  state.addRegion();
  Operation *grid = impl->builder.create(state);
  Block *block = addGridRegion(*impl, grid->getRegion(0), extents.size(), loc);
  impl->builder.setInsertionPointToEnd(block);
  YieldOp::create(impl->builder, loc);
  if (failed(verify(grid, /*verifyRecursively=*/false))) {
    impl->builder.setInsertionPointAfter(grid);
    grid->erase();
    return {};
  }
  impl->grid = grid;
  impl->frames.push_back({Frame::Grid, grid});
  impl->builder.setInsertionPoint(block->getTerminator());
  return impl->wrapAll(block->getArguments());
}

KernelBuilder::Value
KernelBuilder::beginRaggedForall(Value cuSeqlens, Value rows,
                                 const Values &inner,
                                 const SourceLocation &location) {
  Values extents = inner;
  extents.insert(extents.begin(), rows);
  if (!impl->checkOpen(location, /*inGrid=*/false) ||
      !impl->checkTensor(cuSeqlens, "cu_seqlens", location) ||
      !checkGrid(*impl, extents, location))
    return {};
  Location loc = impl->at(location);
  OperationState state(loc, RaggedForallOp::getOperationName());
  state.addOperands(impl->get(cuSeqlens));
  state.addOperands(impl->getAll(extents));
  state.addRegion();
  state.addRegion();
  Operation *grid = impl->builder.create(state);
  Block *predicate = addGridRegion(*impl, grid->getRegion(0), 1, loc);
  Block *body =
      addGridRegion(*impl, grid->getRegion(1), 1 + extents.size(), loc);
  impl->builder.setInsertionPointToEnd(body);
  YieldOp::create(impl->builder, loc);
  impl->grid = grid;
  impl->frames.push_back({Frame::Predicate, grid});
  impl->builder.setInsertionPointToEnd(predicate);
  return impl->wrap(predicate->getArgument(0));
}

KernelBuilder::Values
KernelBuilder::beginRaggedBody(Value predicate,
                               const SourceLocation &location) {
  if (!impl->closing(Frame::Predicate, "the predicate of a grid", location) ||
      !impl->checkCondition(predicate, "predicate", location))
    return {};
  YieldOp::create(impl->builder, impl->at(location), impl->get(predicate));
  Operation *grid = impl->frames.back().op;
  impl->frames.back().kind = Frame::Grid;
  Block *body = &grid->getRegion(1).front();
  // Verify the whole grid now: its operands, and the ops of its predicate.
  if (failed(verify(grid, /*verifyRecursively=*/true)))
    return {};
  impl->builder.setInsertionPoint(body->getTerminator());
  return impl->wrapAll(body->getArguments());
}

bool KernelBuilder::endGrid(const SourceLocation &location) {
  if (!impl->closing(Frame::Grid, "a grid", location))
    return false;
  Operation *grid = impl->frames.back().op;
  impl->frames.pop_back();
  impl->builder.setInsertionPointAfter(grid);
  return true;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

KernelBuilder::Values KernelBuilder::beginFor(Value lower, Value upper,
                                              Value step, const Values &initial,
                                              const SourceLocation &location) {
  if (!impl->checkOpen(location) ||
      !impl->checkVisible({lower, upper, step}, "bounds of a loop", location) ||
      !checkCarried(*impl, initial, "values of a loop", location))
    return {};
  Type type = impl->get(lower).getType();
  if (!type.isIndex() && !type.isInteger(32) && !type.isInteger(64))
    return impl->fail(location)
           << "expected index, i32 or i64 for the bounds of a loop, got "
           << impl->spell(lower);
  for (Value bound : {upper, step})
    if (impl->get(bound).getType() != type)
      return impl->fail(location)
             << "expected one type for the bounds of a loop, got "
             << impl->spell(lower) << " and " << impl->spell(bound);
  Location loc = impl->at(location);
  auto loop =
      scf::ForOp::create(impl->builder, loc, impl->get(lower), impl->get(upper),
                         impl->get(step), impl->getAll(initial),
                         [](OpBuilder &, Location, mlir::Value, ValueRange) {
                           // beginFor's caller adds the body, and endFor() its
                           // yield.
                         });
  impl->frames.push_back({Frame::For, loop});
  impl->builder.setInsertionPointToEnd(loop.getBody());
  return impl->wrapAll(loop.getBody()->getArguments());
}

bool KernelBuilder::endFor(const Values &next, Values &results,
                           const SourceLocation &location) {
  if (!impl->closing(Frame::For, "a loop", location) ||
      !checkCarried(*impl, next, "values of a loop", location))
    return false;
  auto loop = cast<scf::ForOp>(impl->frames.back().op);
  if (!checkTypes(*impl, next, loop.getResultTypes(), "values of a loop",
                  location))
    return false;
  buildYield(*impl, next, loop.getResultTypes(), impl->at(location));
  impl->frames.pop_back();
  impl->builder.setInsertionPointAfter(loop);
  results = impl->wrapAll(loop.getResults());
  return true;
}

//===----------------------------------------------------------------------===//
// Branches
//===----------------------------------------------------------------------===//

bool KernelBuilder::beginIf(Value condition, const SourceLocation &location) {
  if (!impl->checkOpen(location) ||
      !impl->checkCondition(condition, "condition", location))
    return false;
  auto branch =
      scf::IfOp::create(impl->builder, impl->at(location), TypeRange(),
                        impl->get(condition), /*addThenBlock=*/true,
                        /*addElseBlock=*/false);
  impl->frames.push_back({Frame::Then, branch});
  impl->builder.setInsertionPointToEnd(branch.thenBlock());
  return true;
}

bool KernelBuilder::beginElse(const Values &values,
                              const SourceLocation &location) {
  if (!impl->closing(Frame::Then, "the first half of a branch", location) ||
      !checkCarried(*impl, values, "values of a branch", location))
    return false;
  scf::YieldOp::create(impl->builder, impl->at(location), impl->getAll(values));
  auto branch = cast<scf::IfOp>(impl->frames.back().op);
  impl->frames.back().kind = Frame::Else;
  impl->builder.setInsertionPointToEnd(&branch.getElseRegion().emplaceBlock());
  return true;
}

/// Returns the result types of a branch. `values` are those of its second half.
/// Converts values of the first half to their types: a constant to another
/// number, and a state without a sink to one with a sink.
static SmallVector<Type> joinBranches(Impl &impl, scf::IfOp branch,
                                      const KernelBuilder::Values &values,
                                      const SourceLocation &location) {
  Operation *yield = branch.thenBlock()->getTerminator();
  OpBuilder::InsertionGuard guard(impl.builder);
  impl.builder.setInsertionPoint(yield);
  for (auto [operand, value] : llvm::zip(yield->getOpOperands(), values)) {
    Type type = impl.get(value).getType();
    operand.set(impl.retypeConstant(operand.get(), type, location));
    if (Type joined = Impl::joinTypes(operand.get().getType(), type))
      operand.set(impl.widen(operand.get(), joined, yield->getLoc()));
  }
  return llvm::to_vector(yield->getOperandTypes());
}

bool KernelBuilder::endIf(const Values &values, Values &results,
                          const SourceLocation &location) {
  if (!impl->closing({Frame::Then, Frame::Else}, "a branch", location) ||
      !checkCarried(*impl, values, "values of a branch", location))
    return false;
  auto branch = cast<scf::IfOp>(impl->frames.back().op);
  SmallVector<Type> expected;
  if (impl->frames.back().kind == Frame::Else)
    expected = joinBranches(*impl, branch, values, location);
  if (!checkTypes(*impl, values, expected, "values of a branch", location))
    return false;
  buildYield(*impl, values, expected, impl->at(location));
  impl->frames.pop_back();
  impl->builder.setInsertionPointAfter(branch);
  results.clear();
  if (values.empty())
    return true;
  // Create the branch again, since its result types were not known before.
  auto typed = scf::IfOp::create(impl->builder, branch.getLoc(), expected,
                                 branch.getCondition(), /*addThenBlock=*/false,
                                 /*addElseBlock=*/false);
  typed.getThenRegion().takeBody(branch.getThenRegion());
  typed.getElseRegion().takeBody(branch.getElseRegion());
  branch.erase();
  results = impl->wrapAll(typed.getResults());
  return true;
}
