//===- Kernel.cpp - mlafix.kernel -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/KernelLimits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlafix;

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name),
                             result.attributes))
    return failure();

  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Type> resultTypes;
  SmallVector<DictionaryAttr> resultAttrs;
  bool isVariadic = false;
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (function_interface_impl::parseFunctionSignatureWithArguments(
          parser, /*allowVariadic=*/false, arguments, isVariadic, resultTypes,
          resultAttrs))
    return failure();
  if (!resultTypes.empty())
    return parser.emitError(loc)
           << "expected a kernel without results, got " << resultTypes.size();

  Builder &b = parser.getBuilder();
  SmallVector<Type> types;
  SmallVector<Attribute> names;
  for (const OpAsmParser::Argument &argument : arguments) {
    if (argument.ssaName.name.empty())
      return parser.emitError(loc) << "expected a name for every argument of a "
                                      "kernel, got types alone";
    types.push_back(argument.type);
    names.push_back(b.getStringAttr(argument.ssaName.name.drop_front()));
  }
  result.addAttribute(getFunctionTypeAttrName(result.name),
                      TypeAttr::get(b.getFunctionType(types, {})));
  result.addAttribute(getArgNamesAttrName(result.name), b.getArrayAttr(names));
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  call_interface_impl::addArgAndResultAttrs(b, result, arguments, resultAttrs,
                                            getArgAttrsAttrName(result.name),
                                            getResAttrsAttrName(result.name));

  Region *body = result.addRegion();
  if (parser.parseRegion(*body, arguments))
    return failure();
  ensureTerminator(*body, b, result.location);
  return success();
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  call_interface_impl::printFunctionSignature(
      printer, getArgumentTypes(), getArgAttrsAttr(), /*isVariadic=*/false, {},
      {}, &getBody(), /*printEmptyResult=*/false);
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getSymNameAttrName(), getFunctionTypeAttrName(), getArgNamesAttrName(),
       getArgAttrsAttrName(), getResAttrsAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/false);
}

void KernelOp::getAsmBlockArgumentNames(Region &region,
                                        OpAsmSetValueNameFn setName) {
  for (auto [argument, name] : llvm::zip(region.getArguments(), getArgNames()))
    setName(argument, cast<StringAttr>(name).getValue());
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

StringRef KernelOp::getArgName(unsigned index) {
  return cast<StringAttr>(getArgNames()[index]).getValue();
}

ArrayAttr KernelOp::getArgDims(unsigned index) {
  return getArgAttrOfType<ArrayAttr>(index, kDimsAttr);
}

StringRef KernelOp::getArgAccess(unsigned index) {
  auto access = getArgAttrOfType<StringAttr>(index, kAccessAttr);
  return access ? access.getValue() : StringRef();
}

bool KernelOp::isArgOptional(unsigned index) {
  return static_cast<bool>(getArgAttr(index, kOptionalAttr));
}

bool KernelOp::isArgAbsent(unsigned index) {
  return getArgAccess(index) == kAbsent;
}

Operation *KernelOp::getGrid() {
  for (Operation &op : getBody().front())
    if (isa<ForallOp, RaggedForallOp>(op))
      return &op;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Verifier
//===----------------------------------------------------------------------===//

/// Names of dims that start with an upper-case letter are compile-time
/// constants.
static bool isConstantName(StringRef name) {
  return !name.empty() && llvm::isUpper(name.front());
}

static LogicalResult verifyTensorArgument(KernelOp kernel, unsigned index,
                                          MemRefType type,
                                          llvm::StringMap<int64_t> &sizes,
                                          llvm::StringMap<Type> &dtypes) {
  auto fail = [&] {
    return kernel.emitOpError()
           << "argument '" << kernel.getArgName(index) << "': ";
  };
  if (getDTypeName(type.getElementType()).empty() ||
      type.getElementType().isIndex())
    return fail() << "expected an element type of " << listDTypes() << ", got "
                  << type.getElementType();
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return fail() << "expected a strided layout, got " << type;
  if (offset != 0 && !ShapedType::isDynamic(offset))
    return fail() << "expected no offset, or a dynamic one (the host's pointer "
                     "is to the first element), got "
                  << offset;
  if (type.getMemorySpace())
    return fail() << "expected no memory space, got " << type.getMemorySpace();

  StringRef access = kernel.getArgAccess(index);
  bool isAbsent = kernel.isArgAbsent(index);
  if (isAbsent && !kernel.isArgOptional(index))
    return fail() << "expected '" << kOptionalAttr << "' beside access \""
                  << kAbsent << "\", got none";
  if (isAbsent && !kernel.getArgument(index).use_empty())
    return fail() << "expected no use of an argument with access \"" << kAbsent
                  << "\", got one";
  if (!isAbsent && access != "read" && access != "write" && access != "update")
    return fail()
           << "expected '" << kAccessAttr
           << "' to be \"read\", \"write\", \"update\" or \"absent\", got "
           << (access.empty() ? "none" : "\"" + access.str() + "\"");

  ArrayAttr dims = kernel.getArgDims(index);
  if (!dims || static_cast<int64_t>(dims.size()) != type.getRank())
    return fail() << "expected '" << kDimsAttr << "' to name " << type.getRank()
                  << " dims, got "
                  << (dims ? std::to_string(dims.size()) : "none");
  for (auto [position, attr] : llvm::enumerate(dims)) {
    if (type.getDimSize(position) == 0)
      return fail() << "expected sizes of at least 1, or dynamic ones, got 0";
    auto name = dyn_cast<StringAttr>(attr);
    if (!name)
      return fail() << "expected '" << kDimsAttr << "' to hold names, got "
                    << attr;
    if (name.getValue().empty())
      continue;
    int64_t size = type.getDimSize(position);
    auto [it, isNew] = sizes.try_emplace(name.getValue(), size);
    if (!isNew && it->second != size)
      return fail() << "expected dim " << name
                    << " to be the same in all arguments, got "
                    << (ShapedType::isDynamic(size) ? "?"
                                                    : std::to_string(size))
                    << " and "
                    << (ShapedType::isDynamic(it->second)
                            ? "?"
                            : std::to_string(it->second));
  }

  if (Attribute attr = kernel.getArgAttr(index, kDTypeAttr)) {
    auto name = dyn_cast<StringAttr>(attr);
    if (!name || !isConstantName(name.getValue()))
      return fail() << "expected '" << kDTypeAttr
                    << "' to be an upper-case name, got " << attr;
    auto [it, isNew] =
        dtypes.try_emplace(name.getValue(), type.getElementType());
    if (!isNew && it->second != type.getElementType())
      return fail() << "expected dtype " << name
                    << " to be the same in all arguments, got "
                    << type.getElementType() << " and " << it->second;
  }
  return success();
}

/// A misspelt attribute would otherwise be one that nobody reads.
static LogicalResult verifyArgAttrs(KernelOp kernel, unsigned index) {
  StringRef known[] = {kDimsAttr, kDTypeAttr, kAccessAttr, kOptionalAttr,
                       kAtMostAttr};
  for (NamedAttribute attr :
       function_interface_impl::getArgAttrs(kernel, index)) {
    StringRef name = attr.getName();
    auto fail = [&] {
      return kernel.emitOpError()
             << "argument '" << kernel.getArgName(index) << "': ";
    };
    if (name.starts_with("mlafix.") && !llvm::is_contained(known, name))
      return fail() << "expected one of "
                    << llvm::join(llvm::ArrayRef(known), ", ") << ", got "
                    << name;
    if (name == kOptionalAttr && !isa<UnitAttr>(attr.getValue()))
      return fail() << "expected '" << kOptionalAttr
                    << "' without a value, got " << attr.getValue();
  }
  return success();
}

LogicalResult KernelOp::verify() {
  if (getArgNames().size() != getNumArguments())
    return emitOpError() << "expected a name for each of the "
                         << getNumArguments() << " arguments, got "
                         << getArgNames().size();
  if (failed(verifyLimits(*this)))
    return failure();
  llvm::StringMap<int64_t> sizes;
  llvm::StringMap<Type> dtypes;
  for (auto [index, type] : llvm::enumerate(getArgumentTypes()))
    if (auto memref = dyn_cast<MemRefType>(type))
      if (failed(verifyTensorArgument(*this, index, memref, sizes, dtypes)))
        return failure();

  llvm::StringSet<> givenDims;
  for (unsigned index = 0; index < getNumArguments(); ++index)
    if (ArrayAttr dims = getArgDims(index); dims && !isArgOptional(index))
      for (StringAttr name : dims.getAsRange<StringAttr>())
        givenDims.insert(name.getValue());

  llvm::StringSet<> names;
  for (auto [index, type] : llvm::enumerate(getArgumentTypes())) {
    auto fail = [&, i = index] {
      return emitOpError() << "argument '" << getArgName(i) << "': ";
    };
    if (failed(verifyArgAttrs(*this, index)))
      return failure();
    if (!names.insert(getArgName(index)).second)
      return fail()
             << "expected a name that no other argument has, got it twice";
    if (isa<MemRefType>(type))
      continue;
    if (!type.isIndex() && !type.isInteger(64) && !type.isInteger(32) &&
        !type.isInteger(1) && !type.isF32())
      return fail()
             << "expected a memref or one of index, i64, i32, f32, i1, got "
             << type;
    if (Attribute bound = getArgAttr(index, kAtMostAttr)) {
      auto dim = dyn_cast<StringAttr>(bound);
      if (!dim || !givenDims.contains(dim.getValue()) || !type.isIntOrIndex())
        return fail() << "expected '" << kAtMostAttr
                      << "' to name a dim of a tensor that is always given and "
                         "bound an integer, got "
                      << bound;
    }
  }
  return success();
}

/// A dim is one that a launch knows. MLIR's own folds do not survive a dim that
/// the type does not have.
static LogicalResult verifyDim(memref::DimOp dim) {
  std::optional<int64_t> index = dim.getConstantIndex();
  auto type = dyn_cast<MemRefType>(dim.getSource().getType());
  if (!index || !type || !getKernelArgument(dim.getSource()))
    return dim.emitOpError() << "expected a constant dim of an argument of the "
                                "kernel, got another";
  if (*index < 0 || *index >= type.getRank())
    return dim.emitOpError() << "expected a dim below the rank, "
                             << type.getRank() << ", got " << *index;
  return success();
}

/// A name is a dim, a dtype, a base or an optional argument, and its default
/// one of the first three's.
static LogicalResult verifyNames(KernelOp kernel) {
  llvm::StringMap<BindableName::Kind> kinds;
  for (const BindableName &name : getBindableNames(kernel))
    if (!kinds.try_emplace(name.name, name.kind).second)
      return kernel.emitOpError()
             << "expected different names for dims, dtypes, bases and optional "
                "arguments, got '"
             << name.name << "' for two of them";
  DictionaryAttr bound = kernel.getBindings().value_or(DictionaryAttr());
  for (NamedAttribute entry : kernel.getDefaults().value_or(
           DictionaryAttr::get(kernel.getContext()))) {
    StringRef name = entry.getName();
    auto kind = kinds.find(name);
    if (kind == kinds.end()) {
      if (bound && bound.contains(name))
        continue;
      return kernel.emitOpError()
             << "expected 'defaults' to hold names of the kernel, got '" << name
             << "'";
    }
    auto text = dyn_cast<StringAttr>(entry.getValue());
    auto number = dyn_cast<IntegerAttr>(entry.getValue());
    auto fail = [&](StringRef expected) {
      return kernel.emitOpError()
             << "expected " << expected << " as the default of '" << name
             << "', got " << entry.getValue();
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
      if (!text || (text.getValue() != "e" && text.getValue() != "2"))
        return fail("\"e\" or \"2\"");
      break;
    case BindableName::DynamicDim:
      return fail("no default, the dim being dynamic,");
    case BindableName::Presence:
      return fail("no default, the argument being optional,");
    }
  }
  return success();
}

/// Names of the body go with the ops that fold away, and their defaults with
/// them.
LogicalResult KernelOp::canonicalize(KernelOp op, PatternRewriter &rewriter) {
  DictionaryAttr defaults = op.getDefaults().value_or(DictionaryAttr());
  if (!defaults)
    return rewriter.notifyMatchFailure(op, "no defaults");
  llvm::StringSet<> names;
  for (const BindableName &name : getBindableNames(op))
    names.insert(name.name);
  DictionaryAttr bound = op.getBindings().value_or(DictionaryAttr());
  SmallVector<NamedAttribute> kept;
  for (NamedAttribute entry : defaults)
    if (names.contains(entry.getName()) ||
        (bound && bound.contains(entry.getName())))
      kept.push_back(entry);
  if (kept.size() == defaults.size())
    return rewriter.notifyMatchFailure(op, "every name is there");
  rewriter.modifyOpInPlace(op, [&] {
    if (kept.empty())
      op.removeDefaultsAttr();
    else
      op.setDefaultsAttr(rewriter.getDictionaryAttr(kept));
  });
  return success();
}

LogicalResult KernelOp::verifyRegions() {
  if (failed(verifyNames(*this)) || failed(verifyGridLimits(*this)))
    return failure();
  WalkResult walk =
      this->walk([](memref::DimOp dim) { return WalkResult(verifyDim(dim)); });
  if (walk.wasInterrupted())
    return failure();
  // Once distributed, the body is a thread's program.
  if (getGeometry())
    return success();
  Operation *grid = nullptr;
  for (Operation &op : getBody().front().without_terminator()) {
    if (isa<ForallOp, RaggedForallOp>(op)) {
      if (grid)
        return op.emitOpError()
               << "expected one grid in a kernel, got a second";
      grid = &op;
      continue;
    }
    if (!isMemoryEffectFree(&op) || op.getNumRegions() != 0 ||
        llvm::any_of(op.getOperandTypes(), isRowTile))
      return op.emitOpError() << "expected only constants, dims and the grid "
                                 "at the top of a kernel, got an op with "
                                 "effects, a region or a row operand";
  }
  if (!grid)
    return emitOpError() << "expected a grid (mlafix.forall or "
                            "mlafix.ragged_forall) in a kernel, got none";
  return success();
}
