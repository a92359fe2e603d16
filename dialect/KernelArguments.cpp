//===- KernelArguments.cpp - arguments of a kernel and the names in them --===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/KernelVerifier.h"
#include "mlafix/UnitLimits.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlafix;

static LogicalResult verifyStorage(KernelOp kernel, unsigned index,
                                   MemRefType type);

InFlightDiagnostic mlafix::failAt(KernelOp kernel, unsigned index) {
  return kernel.emitOpError()
         << "argument '" << kernel.getArgName(index) << "': ";
}

//===----------------------------------------------------------------------===//
// Types and attributes
//===----------------------------------------------------------------------===//

static std::string spellSize(int64_t size) {
  return ShapedType::isDynamic(size) ? "?" : std::to_string(size);
}

namespace {
/// Checks the tensor arguments of a kernel, one after another, and compares
/// each with the earlier ones.
class TensorVerifier {
public:
  explicit TensorVerifier(KernelOp kernel) : kernel(kernel) {}

  LogicalResult verify(unsigned index, MemRefType type) {
    return failure(failed(verifyType(index, type)) ||
                   failed(verifyAccess(index)) ||
                   failed(verifyDims(index, type)) ||
                   failed(verifyDType(index, type.getElementType())) ||
                   failed(verifyStorage(kernel, index, type)) ||
                   failed(verifyFill(index, type.getElementType())) ||
                   failed(verifyMany(index, type)));
  }

private:
  LogicalResult verifyType(unsigned index, MemRefType type);
  LogicalResult verifyAccess(unsigned index);
  LogicalResult verifyDims(unsigned index, MemRefType type);
  LogicalResult verifyProduct(unsigned index, StringRef dim, int64_t size);
  LogicalResult verifyDType(unsigned index, Type element);
  LogicalResult verifyFill(unsigned index, Type element);
  LogicalResult verifyMany(unsigned index, MemRefType type);
  LogicalResult verifyRanks(unsigned index, MemRefType type);
  LogicalResult verifyList(unsigned index, MemRefType type);

  InFlightDiagnostic fail(unsigned index) { return failAt(kernel, index); }

  KernelOp kernel;
  llvm::StringMap<int64_t> sizes; ///< size of each dim, by its name
  llvm::StringMap<Type> dtypes;   ///< type of each dtype variable
  StringAttr ranks; ///< name of the dim that counts ranks, or null
  size_t many = 0;  ///< number of arguments with several tensors
};
} // namespace

LogicalResult TensorVerifier::verifyType(unsigned index, MemRefType type) {
  if (getDTypeName(type.getElementType()).empty() ||
      type.getElementType().isIndex())
    return fail(index) << "expected an element type of " << listDTypes()
                       << ", got " << type.getElementType();
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return fail(index) << "expected a strided layout, got " << type;
  if (offset != 0 && !ShapedType::isDynamic(offset))
    return fail(index) << "expected no offset, or a dynamic one (the host's "
                          "pointer is to the first element), got "
                       << offset;
  if (type.getMemorySpace())
    return fail(index) << "expected no memory space, got "
                       << type.getMemorySpace();
  return success();
}

LogicalResult TensorVerifier::verifyAccess(unsigned index) {
  StringRef access = kernel.getArgAccess(index);
  bool isAbsent = kernel.isArgAbsent(index);
  if (isAbsent && !kernel.isArgOptional(index))
    return fail(index) << "expected '" << kOptionalAttr << "' beside access \""
                       << kAbsent << "\", got none";
  if (isAbsent && !kernel.getArgument(index).use_empty())
    return fail(index) << "expected an argument with access \"" << kAbsent
                       << "\" to be unused, got a use of it in the body";
  if (!isAbsent && access != "read" && access != "write" && access != "update")
    return fail(index)
           << "expected '" << kAccessAttr
           << "' to be \"read\", \"write\", \"update\" or \"absent\", got "
           << (access.empty() ? "none" : "\"" + access.str() + "\"");
  return success();
}

LogicalResult TensorVerifier::verifyDims(unsigned index, MemRefType type) {
  ArrayAttr dims = kernel.getArgDims(index);
  if (!dims || static_cast<int64_t>(dims.size()) != type.getRank())
    return fail(index) << "expected '" << kDimsAttr << "' to name "
                       << type.getRank() << " dims, got "
                       << (dims ? std::to_string(dims.size()) : "none");
  for (auto [position, attr] : llvm::enumerate(dims)) {
    int64_t size = type.getDimSize(position);
    if (size == 0)
      return fail(index)
             << "expected sizes of at least 1, or dynamic ones, got 0";
    auto name = dyn_cast<StringAttr>(attr);
    if (!name)
      return fail(index) << "expected '" << kDimsAttr << "' to hold names, got "
                         << attr;
    if (name.getValue().empty())
      continue;
    auto [it, isNew] = sizes.try_emplace(name.getValue(), size);
    if (!isNew && it->second != size)
      return fail(index) << "expected dim " << name
                         << " to be the same in all arguments, got "
                         << spellSize(size) << " and " << spellSize(it->second);
    std::optional<int64_t> most = kernel.getMostOf(name.getValue());
    if (most && !ShapedType::isDynamic(size) && size > *most)
      return fail(index) << "expected dim " << name << " to be at most "
                         << *most << ", got " << size;
    if (name.getValue().starts_with("(") &&
        failed(verifyProduct(index, name.getValue(), size)))
      return failure();
  }
  return success();
}

/// Checks a product in an argument's dims. `size`, the dim's size in the
/// argument's type, must be the product of the two factors or, if a factor is
/// an unbound name, dynamic. A dim that has the name of such a factor must be
/// dynamic, too.
LogicalResult TensorVerifier::verifyProduct(unsigned index, StringRef dim,
                                            int64_t size) {
  std::optional<Factors> factors = Factors::of(dim);
  if (!factors || !factors->isValid())
    return fail(index) << "expected a product of two dims, upper-case names or "
                          "numbers, as \"(G 128)\", got \""
                       << dim << "\"";
  DimAttr product = factors->getDim(kernel);
  for (StringRef name : product.getNames())
    if (auto it = sizes.find(name);
        it != sizes.end() && !ShapedType::isDynamic(it->second))
      return fail(index) << "expected dim \"" << name << "\", a factor of \""
                         << dim << "\", to be dynamic until it is bound, got "
                         << it->second;
  if (product.getSize() == size)
    return success();
  return fail(index) << "expected the size of dim \"" << dim << "\" to be "
                     << (product.isBound()
                             ? std::to_string(product.getSize())
                             : "dynamic until its names are bound")
                     << ", got " << spellSize(size);
}

LogicalResult TensorVerifier::verifyDType(unsigned index, Type element) {
  Attribute attr = kernel.getArgAttr(index, kDTypeAttr);
  if (!attr)
    return success();
  auto name = dyn_cast<StringAttr>(attr);
  if (!name || !isConstantName(name.getValue()))
    return fail(index) << "expected '" << kDTypeAttr
                       << "' to be an upper-case name, got " << attr;
  auto [it, isNew] = dtypes.try_emplace(name.getValue(), element);
  if (!isNew && it->second != element)
    return fail(index) << "expected dtype " << name
                       << " to be the same in all arguments, got " << element
                       << " and " << it->second;
  return success();
}

LogicalResult TensorVerifier::verifyFill(unsigned index, Type element) {
  Attribute fill = kernel.getArgAttr(index, kFillAttr);
  if (!fill)
    return success();
  if (StringRef access = kernel.getArgAccess(index);
      access != "write" && access != kAbsent)
    return fail(index) << "expected '" << kFillAttr
                       << "' of a tensor with access \"write\", got access \""
                       << access << "\"";
  bool isFloat = isa<FloatType>(element);
  auto text = dyn_cast<StringAttr>(fill);
  auto real = dyn_cast<FloatAttr>(fill);
  auto integer = dyn_cast<IntegerAttr>(fill);
  if ((text && text.getValue() == kIdentity) ||
      (real && real.getType().isF32() && isFloat))
    return success();
  bool isVariable = static_cast<bool>(kernel.getArgAttr(index, kDTypeAttr));
  // A kernel that only moves elements treats them as integers, even if the
  // dtype variable is bound to a float. The fill is then an integer and must be
  // 0, whose bits are those of 0.0 in every float type.
  if (integer && isFloat && isVariable && integer.getValue().isZero())
    return success();
  if (integer && element.isInteger()) {
    unsigned width = element.getIntOrFloatBitWidth();
    const APInt &value = integer.getValue();
    bool isUnsigned = element.isUnsignedInteger() || width == 1;
    if (isVariable ||
        (isUnsigned ? value.isIntN(width) : value.isSignedIntN(width)))
      return success();
  }
  return fail(index) << "expected "
                     << (isFloat ? "a number of type f32"
                                 : "an integer in the range of the dtype")
                     << " or \"identity\""
                     << " as '" << kFillAttr << "', got " << fill;
}

LogicalResult TensorVerifier::verifyRanks(unsigned index, MemRefType type) {
  auto dim = cast<StringAttr>(kernel.getArgDims(index)[0]);
  if (dim.getValue().empty() || (ranks && ranks != dim)) {
    InFlightDiagnostic error =
        fail(index) << "expected the first dim, which counts the ranks, to "
                       "have one name in all arguments, got "
                    << dim;
    return ranks ? error << " and " << ranks : error;
  }
  ranks = dim;
  if (int64_t size = type.getDimSize(0); size > MLAFIX_MAX_RANKS)
    return fail(index) << "expected at most " << int(MLAFIX_MAX_RANKS)
                       << " ranks, got " << size;
  return success();
}

LogicalResult TensorVerifier::verifyList(unsigned index, MemRefType type) {
  Attribute given = kernel.getArgAttr(index, kListAttr);
  auto most = dyn_cast<IntegerAttr>(given);
  if (kernel.isArgPeers(index))
    return fail(index) << "expected '" << kListAttr << "' or '" << kPeersAttr
                       << "', got both";
  if (!most || most.getInt() < 1 || most.getInt() > MLAFIX_MAX_RANKS)
    return fail(index) << "expected '" << kListAttr
                       << "' to be the most tensors that a call may pass, 1 to "
                       << int(MLAFIX_MAX_RANKS) << ", got " << given;
  if (int64_t size = type.getDimSize(0); size > most.getInt())
    return fail(index) << "expected a list of at most " << most.getInt()
                       << " tensors, got " << size;
  return success();
}

LogicalResult TensorVerifier::verifyMany(unsigned index, MemRefType type) {
  if (!kernel.isArgMany(index))
    return success();
  bool isList = static_cast<bool>(kernel.getArgAttr(index, kListAttr));
  StringRef name = isList ? kListAttr : kPeersAttr;
  StringRef access = kernel.getArgAccess(index);
  if ((access != "read" && (isList || access != "update")) ||
      kernel.isArgOptional(index))
    return fail(index) << "expected '" << name << "' of a tensor that is "
                       << (isList ? "only read" : "only read, or updated,")
                       << " and not optional, got access \"" << access << "\""
                       << (kernel.isArgOptional(index) ? ", optional" : "");
  if (type.getRank() < 2)
    return fail(index) << "expected at least 2 dims of an argument with '"
                       << name << "', the first of which counts the "
                       << (isList ? "tensors" : "ranks") << ", got "
                       << type.getRank();
  if (failed(isList ? verifyList(index, type) : verifyRanks(index, type)))
    return failure();
  int64_t stride = type.getStridesAndOffset().first[0];
  if (!ShapedType::isDynamic(stride))
    return fail(index) << "expected a dynamic stride between the tensors of "
                       << (isList ? "a list" : "ranks") << ", got " << stride;
  if (++many > limits::peers)
    return fail(index) << "expected at most " << limits::peers
                       << " arguments with '" << kPeersAttr << "' or '"
                       << kListAttr << "', got more";
  return success();
}

/// Checks the attributes of an argument. Unknown ones are errors, since a
/// misspelt attribute would otherwise be ignored.
static LogicalResult verifyArgAttrs(KernelOp kernel, unsigned index) {
  StringRef known[] = {kDimsAttr,     kDTypeAttr,  kAccessAttr,
                       kOptionalAttr, kAtMostAttr, kFillAttr,
                       kPeersAttr,    kListAttr,   kSwizzleAttr};
  for (NamedAttribute attr :
       function_interface_impl::getArgAttrs(kernel, index)) {
    StringRef name = attr.getName();
    if (name.starts_with("mlafix.") && !llvm::is_contained(known, name))
      return failAt(kernel, index)
             << "expected one of " << llvm::join(llvm::ArrayRef(known), ", ")
             << ", got " << name;
    if ((name == kOptionalAttr || name == kPeersAttr) &&
        !isa<UnitAttr>(attr.getValue()))
      return failAt(kernel, index)
             << "expected '" << name << "' without a value, got "
             << attr.getValue();
  }
  return success();
}

/// Checks a scalar argument. `givenDims` are the dims of tensors that every
/// call passes.
static LogicalResult verifyScalar(KernelOp kernel, unsigned index, Type type,
                                  const llvm::StringSet<> &givenDims) {
  if (!type.isIndex() && !type.isInteger(64) && !type.isInteger(32) &&
      !type.isInteger(1) && !type.isF32())
    return failAt(kernel, index)
           << "expected a memref or one of index, i64, i32, f32, i1, "
              "got "
           << type;
  if (kernel.isArgMany(index))
    return failAt(kernel, index)
           << "expected '"
           << (kernel.isArgPeers(index) ? kPeersAttr : kListAttr)
           << "' of a tensor, got " << type;
  Attribute bound = kernel.getArgAttr(index, kAtMostAttr);
  if (!bound)
    return success();
  if (!type.isIntOrIndex())
    return failAt(kernel, index) << "expected '" << kAtMostAttr
                                 << "' of an integer, got one of " << type;
  auto dim = dyn_cast<StringAttr>(bound);
  if (!dim || !givenDims.contains(dim.getValue()))
    return failAt(kernel, index)
           << "expected '" << kAtMostAttr
           << "' to name a dim of a tensor that is always given, got " << bound;
  return success();
}

/// Checks the upper bounds of dims. `givenDims` are the dims of tensors that
/// every call passes.
static LogicalResult verifyMost(KernelOp kernel,
                                const llvm::StringSet<> &givenDims) {
  DictionaryAttr bounds = kernel.getMostAttr();
  if (!bounds)
    return success();
  for (NamedAttribute entry : bounds) {
    StringRef name = entry.getName();
    auto most = dyn_cast<IntegerAttr>(entry.getValue());
    if (!most || most.getInt() < 1 || most.getInt() > INT32_MAX)
      return kernel.emitOpError() << "expected a number from 1 to " << INT32_MAX
                                  << " as the bound of dim '" << name
                                  << "', got " << entry.getValue();
    if (isConstantName(name) || !givenDims.contains(name))
      return kernel.emitOpError()
             << "expected 'most' to bound lower-case dims of tensors that are "
                "always given, got '"
             << name << "'";
  }
  return success();
}

LogicalResult mlafix::verifyArguments(KernelOp kernel) {
  TensorVerifier tensors(kernel);
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes()))
    if (auto memref = dyn_cast<MemRefType>(type))
      if (failed(tensors.verify(index, memref)))
        return failure();

  llvm::StringSet<> givenDims;
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index)
    if (ArrayAttr dims = kernel.getArgDims(index);
        dims && !kernel.isArgOptional(index))
      for (StringAttr name : dims.getAsRange<StringAttr>())
        givenDims.insert(name.getValue());
  if (failed(verifyMost(kernel, givenDims)))
    return failure();

  llvm::StringSet<> names;
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    if (failed(verifyArgAttrs(kernel, index)))
      return failure();
    if (!names.insert(kernel.getArgName(index)).second)
      return failAt(kernel, index)
             << "expected a name that no other argument has, got it twice";
    if (!isa<MemRefType>(type) &&
        failed(verifyScalar(kernel, index, type, givenDims)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Layout of elements in memory
//===----------------------------------------------------------------------===//

/// Checks a tensor in which two elements share a byte. Each row must start at a
/// byte boundary, and neither a dtype variable nor a fill is allowed.
static LogicalResult verifyPairs(KernelOp kernel, unsigned index,
                                 MemRefType type) {
  Type element = type.getElementType();
  if (!sharesByte(element))
    return success();
  if (kernel.getArgAttr(index, kDTypeAttr))
    return failAt(kernel, index)
           << "expected a dtype variable to stand for elements of "
              "whole bytes, got "
           << getDTypeName(element);
  if (kernel.getArgAttr(index, kFillAttr))
    return failAt(kernel, index)
           << "expected no '" << kFillAttr << "' of " << getDTypeName(element)
           << ", got one; declare InOut and fill it before the call";
  int64_t rank = type.getRank();
  if (rank == 0 || type.getStridesAndOffset().first.back() != 1)
    return failAt(kernel, index)
           << "expected a last dim with stride 1 for elements of "
           << getDTypeName(element) << ", got " << type;
  int64_t size = type.getDimSize(rank - 1);
  if (ShapedType::isDynamic(size) || size % 2 == 0)
    return success();
  return failAt(kernel, index)
         << "expected an even size of the last dim for elements of "
         << getDTypeName(element) << " (two elements a byte), got " << size;
}

/// Checks the static strides of a tensor in tiles. A launch applies the same
/// rules to the tensor that a call passes. Does nothing for a code version,
/// since the compiler has chosen the static strides of its arguments.
static LogicalResult verifyPitch(KernelOp kernel, unsigned index,
                                 MemRefType type) {
  if (kernel.getPlanAttr())
    return success();
  SmallVector<int64_t> strides = type.getStridesAndOffset().first;
  int64_t columns = 1; // product of the static sizes after dim `i`
  for (int64_t i = type.getRank() - 1; i > 0; --i) {
    int64_t size = type.getDimSize(i);
    if (ShapedType::isDynamic(size))
      break;
    if (size > 1 && !ShapedType::isDynamic(strides[i]) && strides[i] != columns)
      return failAt(kernel, index)
             << "expected stride " << columns << " in dim " << i
             << ", since the columns of a tensor with '" << kSwizzleAttr
             << "' follow each other, got " << strides[i];
    columns *= size;
  }
  int64_t pitch = strides.front();
  if (ShapedType::isDynamic(pitch) || (pitch >= columns && pitch % 4 == 0))
    return success();
  return failAt(kernel, index)
         << "expected a row stride that is a multiple of 4 and at least "
         << columns << " for a tensor with '" << kSwizzleAttr << "', got "
         << pitch;
}

/// Checks a tensor in tiles (`mlafix.swizzle`). Its first dim counts rows, and
/// its other dims together count columns.
static LogicalResult verifySwizzle(KernelOp kernel, unsigned index,
                                   MemRefType type) {
  Attribute given = kernel.getArgAttr(index, kSwizzleAttr);
  if (!given)
    return success();
  auto layout = dyn_cast<StringAttr>(given);
  int64_t tileRows = layout ? getTileRows(layout.getValue()) : 0;
  if (!tileRows)
    return failAt(kernel, index)
           << "expected '" << kSwizzleAttr
           << "' to be \"128x4\" or \"8x4\", got " << given;
  if (kernel.isArgMany(index))
    return failAt(kernel, index)
           << "expected '" << kSwizzleAttr << "' of a single tensor, got "
           << (kernel.isArgPeers(index) ? "Peers" : "List");
  if (type.getRank() < 2)
    return failAt(kernel, index) << "expected 2 dims or more beside '"
                                 << kSwizzleAttr << "', got " << type.getRank();
  if (sharesByte(type.getElementType()))
    return failAt(kernel, index)
           << "expected elements of whole bytes beside '" << kSwizzleAttr
           << "', got " << getDTypeName(type.getElementType());
  if (type.getStridesAndOffset().first.back() != 1)
    return failAt(kernel, index) << "expected a last dim with stride 1 beside '"
                                 << kSwizzleAttr << "', got " << type;
  int64_t rows = type.getDimSize(0);
  if (ShapedType::isDynamic(rows) || rows % tileRows == 0)
    return verifyPitch(kernel, index, type);
  return failAt(kernel, index) << "expected a multiple of " << tileRows
                               << " rows, padding included, of a tensor with '"
                               << kSwizzleAttr << "', got " << rows;
}

static LogicalResult verifyStorage(KernelOp kernel, unsigned index,
                                   MemRefType type) {
  return failure(failed(verifyPairs(kernel, index, type)) ||
                 failed(verifySwizzle(kernel, index, type)));
}

//===----------------------------------------------------------------------===//
// Names that can be bound
//===----------------------------------------------------------------------===//

/// Returns the name of the base if `type` is a state with an unbound base, else
/// "".
static StringRef getBaseName(Type type) {
  auto state = dyn_cast<StateType>(type);
  return state ? state.getBase().getName() : StringRef();
}

SmallVector<StringRef, 2> mlafix::getLengthNames(Type type) {
  if (auto state = dyn_cast<StateType>(type))
    return state.getDim().getNames();
  return isRowTile(type) ? getTileDim(type).getNames()
                         : SmallVector<StringRef, 2>();
}

static Attribute getDefault(KernelOp kernel, StringRef name) {
  DictionaryAttr defaults = kernel.getDefaultsAttr();
  return defaults ? defaults.get(name) : Attribute();
}

/// Returns the default of `name` if it is text, else "".
static StringRef getDefaultText(KernelOp kernel, StringRef name) {
  auto text = dyn_cast_if_present<StringAttr>(getDefault(kernel, name));
  return text ? text.getValue() : StringRef();
}

static std::string spellDefault(KernelOp kernel, StringRef name) {
  if (auto number = dyn_cast_if_present<IntegerAttr>(getDefault(kernel, name)))
    return std::to_string(number.getInt());
  return getDefaultText(kernel, name).str();
}

StringRef
mlafix::resolveBase(KernelOp kernel, StringRef name,
                    llvm::function_ref<StringRef(StringRef)> getBound) {
  // This loop ends, since the verifier refuses cycles of defaults.
  while (isConstantName(name)) {
    StringRef bound = getBound(name);
    name = bound.empty() ? getDefaultText(kernel, name) : bound;
  }
  return name;
}

SmallVector<BindableName> mlafix::getBindableNames(KernelOp kernel) {
  llvm::MapVector<StringRef, BindableName::Kind> dims, dtypes, bases, dynamic,
      presence;
  DictionaryAttr bound = kernel.getBindingsAttr();
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    auto memref = dyn_cast<MemRefType>(type);
    if (!memref || kernel.isArgAbsent(index))
      continue;
    if (kernel.isArgOptional(index))
      presence.insert({kernel.getArgName(index), BindableName::Presence});
    for (auto [position, attr] : llvm::enumerate(kernel.getArgDims(index))) {
      StringRef name = cast<StringAttr>(attr).getValue();
      if (name.empty() || !memref.isDynamicDim(position))
        continue;
      if (std::optional<Factors> factors = Factors::of(name)) {
        for (StringRef factor : {factors->groups, factors->group})
          if (isConstantName(factor))
            dims.insert({factor, BindableName::Dim});
      } else if (isConstantName(name))
        dims.insert({name, BindableName::Dim});
      else
        dynamic.insert({name, BindableName::DynamicDim});
    }
    if (auto name = kernel.getArgAttrOfType<StringAttr>(index, kDTypeAttr))
      if (!bound || !bound.contains(name.getValue()))
        dtypes.insert({name.getValue(), BindableName::DType});
  }
  kernel.walk([&](Operation *op) {
    for (Type type : llvm::concat<const Type>(op->getOperandTypes(),
                                              op->getResultTypes())) {
      if (StringRef name = getBaseName(type); !name.empty())
        bases.insert({name, BindableName::Base});
      // Also add dims that no argument has, for example that of a state of
      // which only the lse is stored.
      for (StringRef name : getLengthNames(type))
        if (isConstantName(name))
          dims.insert({name, BindableName::Dim});
    }
  });

  // Add bases that are only the default of another base and occur in no state.
  SmallVector<StringRef> pending =
      llvm::to_vector(llvm::make_first_range(bases));
  while (!pending.empty()) {
    StringRef other = getDefaultText(kernel, pending.pop_back_val());
    if (isConstantName(other) && !(bound && bound.contains(other)) &&
        bases.insert({other, BindableName::Base}).second)
      pending.push_back(other);
  }

  SmallVector<BindableName> names;
  for (const auto *kind : {&dims, &dtypes, &bases, &dynamic, &presence})
    for (auto [name, kind] : *kind)
      names.push_back({name, kind, spellDefault(kernel, name)});
  return names;
}

/// Returns true if `name` has a default, and the chain of defaults that starts
/// at `name` ends with "e", "2", or a base that has no default. Returns false
/// if the chain is a cycle or ends with another text.
static bool isSoundBase(KernelOp kernel, StringRef name) {
  llvm::StringSet<> seen;
  StringRef text = getDefaultText(kernel, name);
  while (isConstantName(text) && text != name && seen.insert(text).second)
    text = getDefaultText(kernel, text);
  // `text` is "" if the last base has no default. If `text` is still the name
  // of a base, the defaults form a cycle.
  return text == "e" || text == "2" || (text.empty() && !seen.empty());
}

LogicalResult mlafix::verifyNames(KernelOp kernel) {
  llvm::StringMap<BindableName::Kind> kinds;
  for (const BindableName &name : getBindableNames(kernel))
    if (!kinds.try_emplace(name.name, name.kind).second)
      return kernel.emitOpError()
             << "expected different names for dims, dtypes, bases and optional "
                "arguments, got '"
             << name.name << "' for two of them";
  DictionaryAttr bound = kernel.getBindingsAttr();
  for (NamedAttribute entry : kernel.getDefaults().value_or(
           DictionaryAttr::get(kernel.getContext()))) {
    StringRef name = entry.getName();
    auto kind = kinds.find(name);
    if (kind == kinds.end()) {
      if (bound && bound.contains(name))
        continue;
      return kernel.emitOpError()
             << "expected 'defaults' to name dims, dtypes and bases of the "
                "kernel, got '"
             << name << "'";
    }
    auto text = dyn_cast<StringAttr>(entry.getValue());
    auto number = dyn_cast<IntegerAttr>(entry.getValue());
    auto fail = [&](StringRef expected) {
      return kernel.emitOpError() << "default of '" << name << "': expected "
                                  << expected << ", got " << entry.getValue();
    };
    switch (kind->second) {
    case BindableName::Dim:
      if (!number || number.getInt() < 1)
        return fail("a size of at least 1");
      break;
    case BindableName::DType:
      if (!text || !getDTypeByName(kernel.getContext(), text.getValue()))
        return fail("the name of a dtype");
      break;
    case BindableName::Base:
      if (!isSoundBase(kernel, name))
        return fail("\"e\", \"2\" or another base, without a cycle");
      break;
    case BindableName::DynamicDim:
      return fail("none, since the dim is dynamic");
    case BindableName::Presence:
      return fail("none, since this is an optional argument");
    }
  }
  return success();
}
