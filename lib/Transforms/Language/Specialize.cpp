//===- Specialize.cpp - bind the names of kernels -------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Language/OpaqueElements.h"
#include "lib/Transforms/Language/Presence.h"
#include "lib/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-specialize"

namespace mlafix {
#define GEN_PASS_DEF_SPECIALIZEPASS
#include "lib/Transforms/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

namespace {
/// The names of a kernel, and the bindings of each kind of name.
struct Names {
  SmallVector<BindableName> all;
  llvm::MapVector<StringRef, int64_t> dims;
  llvm::MapVector<StringRef, Type> dtypes;
  llvm::MapVector<StringRef, BaseAttr> bases;
  llvm::MapVector<StringRef, StringRef> presence;
  /// Dims whose length nothing reads. Any size is right for them, so they get
  /// no binding.
  llvm::StringSet<> lengthless;
  /// Dims bound to "any", whose size the launch decides.
  llvm::StringSet<> open;

  const BindableName *find(StringRef name) const {
    const auto *found = llvm::find_if(
        all, [&](const BindableName &known) { return known.name == name; });
    return found == all.end() ? nullptr : found;
  }
  bool isBound(StringRef name) const {
    return dims.contains(name) || dtypes.contains(name) ||
           bases.contains(name) || presence.contains(name) ||
           open.contains(name);
  }
  std::string list() const {
    std::string text;
    for (const BindableName &name : all)
      text += (text.empty() ? "'" : ", '") + name.name.str() + "'";
    return text.empty() ? "none" : text;
  }
};

class SpecializePass : public mlafix::impl::SpecializePassBase<SpecializePass> {
public:
  using SpecializePassBase::SpecializePassBase;
  void runOnOperation() override;

private:
  LogicalResult bindGiven(KernelOp kernel, Names &names);
  LogicalResult bindDefaults(KernelOp kernel, Names &names);
  LogicalResult bindOne(KernelOp kernel, Names &names, StringRef name,
                        StringRef value);
};
} // namespace

/// Returns the reason why `name` cannot be bound as an optional argument.
static StringRef describeArgument(KernelOp kernel, StringRef name) {
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index)
    if (kernel.getArgName(index) == name)
      return kernel.isArgAbsent(index) ? "bound to absent already"
                                       : "not optional";
  return "no argument";
}

/// The value of a binding that leaves the size of a dim to the launch.
static constexpr StringLiteral kAny = "any";

/// Returns true if some rows have the length `dim`. Their layout depends on
/// this length, so the launch cannot decide it.
static bool isRowLength(KernelOp kernel, StringRef dim) {
  auto isOfLength = [&](Type type) {
    return llvm::is_contained(getLengthNames(type), dim);
  };
  return anyOp(kernel, [&](Operation *op) {
    return llvm::any_of(op->getOperandTypes(), isOfLength) ||
           llvm::any_of(op->getResultTypes(), isOfLength);
  });
}

LogicalResult SpecializePass::bindOne(KernelOp kernel, Names &names,
                                      StringRef name, StringRef value) {
  const BindableName *known = names.find(name);
  if (!known && (value == kAbsent || value == kPresent))
    return kernel.emitError()
           << "expected an optional argument of kernel '" << kernel.getSymName()
           << "' to bind to " << value << ", got '" << name << "', which is "
           << describeArgument(kernel, name);
  if (!known)
    return kernel.emitError()
           << "expected a name of kernel '" << kernel.getSymName()
           << "' to bind (" << names.list() << "), got '" << name << "'";
  switch (known->kind) {
  case BindableName::Dim:
  case BindableName::DynamicDim: {
    if (value == kAny && known->kind == BindableName::Dim) {
      if (!isRowLength(kernel, name)) {
        names.open.insert(known->name);
        return success();
      }
      return kernel.emitError()
             << "expected a positive integer for dim '" << name
             << "', since rows have this length, got 'any'";
    }
    int64_t size;
    if (value.getAsInteger(10, size) || size < 1)
      return kernel.emitError() << "expected a positive integer for dim '"
                                << name << "', got '" << value << "'";
    if (std::optional<int64_t> most = kernel.getMostOf(name);
        most && size > *most)
      return kernel.emitError() << "expected at most " << *most << " for dim '"
                                << name << "', got '" << value << "'";
    names.dims[known->name] = size;
    return success();
  }
  case BindableName::DType: {
    Type type = getDTypeByName(&getContext(), value);
    if (!type)
      return kernel.emitError()
             << "expected one of " << listDTypes() << " for dtype '" << name
             << "', got '" << value << "'";
    names.dtypes[known->name] = type;
    return success();
  }
  case BindableName::Base:
    if (value != "e" && value != "2")
      return kernel.emitError() << "expected e or 2 for base '" << name
                                << "', got '" << value << "'";
    names.bases[known->name] = BaseAttr::get(&getContext(), value);
    return success();
  case BindableName::Presence:
    if (value != kAbsent && value != kPresent)
      return kernel.emitError() << "expected " << kAbsent << " or " << kPresent
                                << " for optional argument '" << name
                                << "', got '" << value << "'";
    names.presence[known->name] = value == kAbsent ? kAbsent : kPresent;
    return success();
  }
  llvm_unreachable("all kinds are handled");
}

LogicalResult SpecializePass::bindGiven(KernelOp kernel, Names &names) {
  for (const std::string &binding : bindings) {
    auto [name, value] = StringRef(binding).split('=');
    if (name.empty() || value.empty())
      return kernel.emitError()
             << "expected a binding NAME=VALUE, got '" << binding << "'";
    if (failed(bindOne(kernel, names, name.trim(), value.trim())))
      return failure();
  }
  return success();
}

/// Returns true if the size of `dim` is observable: an argument has it, a sum
/// or scan runs along it, or an iota counts along it. Otherwise it is only the
/// length of rows that no tensor holds. An example is the payload of a state
/// whose lse alone is stored.
static bool isLengthRead(KernelOp kernel, StringRef dim) {
  auto isHere = [&](StringRef text) { return Factors::has(text, dim); };
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index)
    if (ArrayAttr dims = kernel.getArgDims(index))
      if (!kernel.isArgAbsent(index) &&
          llvm::any_of(dims.getAsValueRange<StringAttr>(), isHere))
        return true;
  return anyOp(kernel, [&](Operation *op) {
    auto reduce = dyn_cast<ReduceOp>(op);
    auto scan = dyn_cast<ScanOp>(op);
    Value row;
    if (isa<IotaOp>(op))
      row = op->getResult(0);
    else if (reduce && reduce.getKind() == ReduceKind::add)
      row = reduce.getSource();
    else if (scan && scan.getKind() == ReduceKind::add)
      row = scan.getSource();
    return row && llvm::is_contained(getTileDim(row.getType()).getNames(), dim);
  });
}

/// Binds names that are missing from `bindings`. Names that only absent
/// arguments had no longer exist, so they need no value. Lengths that nothing
/// reads need no value, either. A name with a default is always bound, so that
/// the bindings of a kernel do not depend on what folds.
LogicalResult SpecializePass::bindDefaults(KernelOp kernel, Names &names) {
  llvm::StringSet<> left;
  for (const BindableName &name : getBindableNames(kernel))
    left.insert(name.name);
  for (const BindableName &name : names.all) {
    if (names.isBound(name.name) || name.kind == BindableName::DynamicDim ||
        name.kind == BindableName::Presence)
      continue;
    if (name.defaultValue.empty()) {
      if (!left.contains(name.name))
        continue;
      if (name.kind == BindableName::Dim && !isLengthRead(kernel, name.name)) {
        names.dims[name.name] = 1;
        names.lengthless.insert(name.name);
        continue;
      }
      constexpr StringLiteral kinds[] = {"size for dim", "dtype for",
                                         "base for"};
      InFlightDiagnostic error = kernel.emitError();
      error << "expected a " << kinds[name.kind] << " '" << name.name
            << "' of kernel '" << kernel.getSymName()
            << "', got no binding of it";
      Builder b(kernel.getContext());
      if (name.kind == BindableName::Dim)
        error.getUnderlyingDiagnostic()->getMetadata().push_back(
            DiagnosticArgument(b.getDictionaryAttr(
                b.getNamedAttr(kUnboundDimKey, b.getStringAttr(name.name)))));
      return error;
    }
    StringRef value = name.defaultValue;
    if (name.kind == BindableName::Base)
      value = resolveBase(kernel, name.name, [&](StringRef other) {
        BaseAttr bound = names.bases.lookup(other);
        return bound ? bound.getValue().getValue() : StringRef();
      });
    // The default of a base may be the name of another base. If that base has
    // no value, the iteration for it reports the error.
    if (value.empty())
      continue;
    if (failed(bindOne(kernel, names, name.name, value)))
      return failure();
  }
  return success();
}

static LogicalResult bindPresence(KernelOp kernel, const Names &names) {
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index) {
    auto it = names.presence.find(kernel.getArgName(index));
    if (it == names.presence.end())
      continue;
    if (it->second == kPresent)
      bindAsPresent(kernel, index);
    else if (failed(bindAsAbsent(kernel, index)))
      return failure();
  }
  if (!names.presence.empty())
    eraseDead(kernel);
  return success();
}

/// Checks that the dtype variable, whose elements have the type `element` in
/// the source, may be bound to `bound`. A variable of integers may be bound to
/// integers of any width, since a body may read them as wider integers. The
/// verifiers of the ops check if the body does so.
static LogicalResult verifyDType(KernelOp kernel, StringAttr variable,
                                 Type element, Type bound) {
  auto isWhole = [](Type type) {
    return type.isInteger() && !type.isInteger(1);
  };
  if (getComputeType(bound) == getComputeType(element) ||
      (isWhole(bound) && isWhole(element)))
    return success();
  if (!isWhole(element) && !isa<FloatType>(element))
    return kernel.emitError()
           << "expected a dtype that is " << getComputeType(element)
           << " in the body for '" << variable.getValue() << "', got "
           << getDTypeName(bound);
  Operation *other = findUseAsNumber(kernel, variable);
  if (!other)
    return success();
  InFlightDiagnostic error = kernel.emitError()
                             << "expected "
                             << (isWhole(element) ? "i32, i64, i8 or u8"
                                                  : "a dtype of floats")
                             << " for '" << variable.getValue()
                             << "', since the body computes with its elements, "
                                "got "
                             << getDTypeName(bound);
  if (!isWhole(element) && isWhole(bound))
    error << "; in Python, DType(\"" << variable.getValue()
          << "\", default=i32) stands for integers";
  error.attachNote(other->getLoc()) << "here";
  return error;
}

/// Makes the kernel move bits instead of floats, for float variables whose
/// elements are only moved. f32 needs no change, since loads and stores keep
/// its bits.
static void moveBits(KernelOp kernel, const Names &names) {
  llvm::StringSet<> seen;
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    auto memref = dyn_cast<MemRefType>(type);
    auto name = kernel.getArgAttrOfType<StringAttr>(index, kDTypeAttr);
    if (!memref || !name || !isa<FloatType>(memref.getElementType()))
      continue;
    auto bound = names.dtypes.find(name.getValue());
    if (bound != names.dtypes.end() && !bound->second.isF32() &&
        seen.insert(name.getValue()).second)
      moveAsBits(kernel, name.getValue());
  }
}

/// Returns the type `memref` of an argument with all names replaced.
static FailureOr<MemRefType> bindMemRef(KernelOp kernel, unsigned index,
                                        MemRefType memref, const Names &names) {
  SmallVector<int64_t> shape(memref.getShape());
  auto sizeOf = [&](StringRef name) -> std::optional<int64_t> {
    auto it = names.dims.find(name);
    return it != names.dims.end() && !names.lengthless.contains(name)
               ? std::optional(it->second)
               : std::nullopt;
  };
  for (auto [position, attr] :
       llvm::enumerate(kernel.getArgDims(index).getAsRange<StringAttr>())) {
    std::optional<Factors> factors = Factors::of(attr.getValue());
    std::optional<int64_t> size = sizeOf(attr.getValue());
    if (factors) {
      DimAttr product = factors->getDim(kernel.getContext()).bind(sizeOf);
      if (product.isBound())
        size = product.getSize();
    }
    if (size)
      shape[position] = *size;
  }
  Type element = memref.getElementType();
  if (auto name = kernel.getArgAttrOfType<StringAttr>(index, kDTypeAttr))
    if (auto it = names.dtypes.find(name.getValue());
        it != names.dtypes.end()) {
      if (failed(verifyDType(kernel, name, element, it->second)))
        return failure();
      element = it->second;
    }
  return MemRefType::get(shape, element, memref.getLayout(),
                         memref.getMemorySpace());
}

static LogicalResult replaceNames(KernelOp kernel, const Names &names) {
  moveBits(kernel, names);
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
    return dim.bind([&](StringRef name) -> std::optional<int64_t> {
      auto it = names.dims.find(name);
      return it == names.dims.end() ? std::nullopt : std::optional(it->second);
    });
  };
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [&](DimAttr dim) -> std::optional<Attribute> { return bindDim(dim); });
  replacer.addReplacement([&](BaseAttr base) -> std::optional<Attribute> {
    auto it = names.bases.find(base.getName());
    return it == names.bases.end() ? base : it->second;
  });
  replacer.addReplacement([](StateType type) -> std::optional<Type> {
    return type.withSink(false); // The sink has already been verified.
  });
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
  if (DictionaryAttr previous = kernel.getBindingsAttr())
    llvm::append_range(bindings, previous);
  for (auto [name, size] : names.dims)
    if (!names.lengthless.contains(name))
      bindings.push_back(b.getNamedAttr(name, b.getI64IntegerAttr(size)));
  for (auto [name, type] : names.dtypes)
    bindings.push_back(
        b.getNamedAttr(name, b.getStringAttr(getDTypeName(type))));
  for (auto [name, base] : names.bases)
    bindings.push_back(b.getNamedAttr(name, base.getValue()));
  for (auto [name, presence] : names.presence)
    bindings.push_back(b.getNamedAttr(name, b.getStringAttr(presence)));
  kernel.setBindingsAttr(b.getDictionaryAttr(bindings));
  return success();
}

namespace {
/// Evaluates indices that are computed from constants and static sizes.
class Evaluator {
public:
  /// Returns the value as an attribute, or null if it is not known.
  Attribute get(Value value) {
    if (auto it = known.find(value); it != known.end())
      return it->second;
    // compute() adds to `known`, so `it` is no longer valid.
    Attribute found = compute(value);
    return known[value] = found;
  }

private:
  Attribute compute(Value value);

  llvm::DenseMap<Value, Attribute> known;
};
} // namespace

Attribute Evaluator::compute(Value value) {
  Attribute constant;
  if (matchPattern(value, m_Constant(&constant)))
    return constant;
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumResults() != 1)
    return {};
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    auto type = dyn_cast<MemRefType>(dim.getSource().getType());
    std::optional<int64_t> position = dim.getConstantIndex();
    if (!type || !position || *position >= type.getRank() ||
        type.isDynamicDim(*position))
      return {};
    return Builder(op->getContext()).getIndexAttr(type.getDimSize(*position));
  }
  SmallVector<Attribute> operands = llvm::map_to_vector(
      op->getOperands(), [&](Value operand) { return get(operand); });
  SmallVector<OpFoldResult> results;
  if (llvm::is_contained(operands, Attribute()) ||
      failed(op->fold(operands, results)) || results.size() != 1)
    return {};
  if (auto attribute = dyn_cast<Attribute>(results.front()))
    return attribute;
  return get(cast<Value>(results.front()));
}

/// Replaces extents that are computed from bound sizes by their values. The
/// verifier rejects other extents that are computed.
static void evaluateExtents(KernelOp kernel) {
  Evaluator evaluator;
  for (Operation &op : kernel.getBody().front()) {
    if (!isa<ForallOp, RaggedForallOp>(op))
      continue;
    for (OpOperand &operand : op.getOpOperands()) {
      if (!operand.get().getType().isIndex() || isKnownAtLaunch(operand.get()))
        continue;
      auto value = dyn_cast_or_null<IntegerAttr>(evaluator.get(operand.get()));
      if (!value)
        continue;
      OpBuilder b(&op);
      operand.set(arith::ConstantIndexOp::create(b, operand.get().getLoc(),
                                                 value.getInt()));
    }
  }
}

void SpecializePass::runOnOperation() {
  for (KernelOp kernel : getOperation().getOps<KernelOp>()) {
    Names names;
    names.all = getBindableNames(kernel);
    if (failed(bindGiven(kernel, names)) ||
        failed(bindPresence(kernel, names)) ||
        failed(bindDefaults(kernel, names)) ||
        failed(replaceNames(kernel, names)))
      return signalPassFailure();
    evaluateExtents(kernel);
    LDBG() << kernel.getSymName() << ": " << kernel.getBindingsAttr();
  }
}
