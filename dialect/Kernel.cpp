//===- Kernel.cpp - mlafix.kernel -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/KernelVerifier.h"
#include "dialect/Origin.h"

#include "mlafix/UnitLimits.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionImplementation.h"
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

bool KernelOp::isArgPeers(unsigned index) {
  return static_cast<bool>(getArgAttr(index, kPeersAttr));
}

bool KernelOp::isArgMany(unsigned index) {
  return isArgPeers(index) || getArgAttr(index, kListAttr);
}

int64_t KernelOp::getArgMost(unsigned index) {
  int64_t count = cast<MemRefType>(getArgumentTypes()[index]).getDimSize(0);
  if (!ShapedType::isDynamic(count))
    return count;
  auto most = getArgAttrOfType<IntegerAttr>(index, kListAttr);
  return most ? most.getInt() : int64_t(MLAFIX_MAX_RANKS);
}

bool KernelOp::isCollective() {
  return llvm::any_of(llvm::seq(getNumArguments()),
                      [&](unsigned index) { return isArgPeers(index); });
}

bool KernelOp::isArgAbsent(unsigned index) {
  return getArgAccess(index) == kAbsent;
}

std::optional<int64_t> KernelOp::getMostOf(StringRef dim) {
  DictionaryAttr bounds = getMostAttr();
  auto most = bounds ? bounds.getAs<IntegerAttr>(dim) : IntegerAttr();
  return most ? std::optional(most.getInt()) : std::nullopt;
}

bool KernelOp::allows(StringRef kind) {
  std::optional<ArrayAttr> allowed = getAllow();
  return allowed &&
         llvm::any_of(allowed->getAsRange<StringAttr>(),
                      [&](StringAttr one) { return one.getValue() == kind; });
}

Operation *KernelOp::getGrid() {
  // Search from the end, since many constants may precede the grid.
  for (Operation &op : llvm::reverse(getBody().front()))
    if (isa<ForallOp, RaggedForallOp>(op))
      return &op;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Names that folded away
//===----------------------------------------------------------------------===//

/// Drops the default of each name that neither occurs in the kernel nor is
/// bound. Folding may have removed the last use of such a name.
LogicalResult KernelOp::canonicalize(KernelOp op, PatternRewriter &rewriter) {
  DictionaryAttr defaults = op.getDefaultsAttr();
  if (!defaults)
    return rewriter.notifyMatchFailure(op, "no defaults");
  llvm::StringSet<> names;
  for (const BindableName &name : getBindableNames(op))
    names.insert(name.name);
  DictionaryAttr bound = op.getBindingsAttr();
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

//===----------------------------------------------------------------------===//
// Verifier
//===----------------------------------------------------------------------===//

LogicalResult KernelOp::verify() {
  if (getArgNames().size() != getNumArguments())
    return emitOpError() << "expected a name for each of the "
                         << getNumArguments() << " arguments, got "
                         << getArgNames().size();
  if (StringRef bounds = getBounds().value_or("guard");
      bounds != "guard" && bounds != "prove")
    return emitOpError() << "expected 'bounds' to be \"guard\" or \"prove\", "
                            "got \""
                         << bounds << "\"";
  if (std::optional<ArrayAttr> allowed = getAllow())
    for (StringAttr kind : allowed->getAsRange<StringAttr>())
      if (kind != "races" && kind != "bounds" && kind != "nan")
        return emitOpError() << "expected 'allow' to hold \"races\", "
                                "\"bounds\" and \"nan\" alone, got "
                             << kind;
  if (failed(verifyLimits(*this)) || failed(verifyArguments(*this)))
    return failure();
  return verifyLaunch(*this);
}

/// Checks that no operand or result of `op` is a state along a dim with a bound
/// (`most`). The size of a state's dim must be known at compile time.
static LogicalResult verifyStates(Operation *op) {
  for (Type type :
       llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
    if (auto state = dyn_cast<StateType>(type);
        state && state.getDim().isBounded())
      return op->emitOpError()
             << "expected a state along a dim that is known when the kernel is "
                "compiled, got one along "
             << state.getDim().str();
  return success();
}

/// Checks that a memref.dim takes a dim of a kernel argument, and that the
/// number of the dim is a constant below the rank. MLIR's folders would crash
/// on any other memref.dim.
static LogicalResult verifyDim(memref::DimOp dim) {
  std::optional<int64_t> index = dim.getConstantIndex();
  auto type = dyn_cast<MemRefType>(dim.getSource().getType());
  if (!type || !getKernelArgument(dim.getSource()))
    return dim.emitOpError()
           << "expected a dim of an argument of the kernel, got one of "
           << describeOrigin(dim.getSource());
  if (!index)
    return dim.emitOpError()
           << "expected a constant as the number of a dim, got "
           << describeOrigin(dim.getIndex());
  if (*index < 0 || *index >= type.getRank())
    return dim.emitOpError() << "expected a dim below the rank, "
                             << type.getRank() << ", got " << *index;
  return success();
}

LogicalResult KernelOp::verifyRegions() {
  if (failed(verifyNames(*this)) || failed(verifyGridLimits(*this)))
    return failure();
  WalkResult walk =
      this->walk([](memref::DimOp dim) { return WalkResult(verifyDim(dim)); });
  if (walk.wasInterrupted() ||
      this->walk([](Operation *op) { return WalkResult(verifyStates(op)); })
          .wasInterrupted())
    return failure();
  // A kernel with a geometry is distributed: its body is the program of one
  // thread, without a grid to check.
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
    if (isa<AssumeOp, DistinctOp>(op))
      continue;
    if (!isMemoryEffectFree(&op) || op.getNumRegions() != 0 ||
        llvm::any_of(op.getOperandTypes(), isRowTile))
      return op.emitOpError()
             << "expected only constants, dims, promises and the grid at the "
                "top of a kernel, got "
             << (!isMemoryEffectFree(&op)  ? "an operation with effects"
                 : op.getNumRegions() != 0 ? "a region"
                                           : "a row")
             << ": put it into the grid";
  }
  size_t checks = llvm::range_size(getBody().getOps<AssumeOp>()) +
                  (getMost() ? getMost()->size() : 0);
  if (checks > limits::checks)
    return emitOpError() << "expected assumptions before the grid and bounds "
                            "of dims to be at most "
                         << limits::checks << " together, got " << checks;
  if (!grid)
    return emitOpError() << "expected a grid (mlafix.forall or "
                            "mlafix.ragged_forall) in a kernel, got none";
  if (isCollective() && !isa<ForallOp>(grid))
    return grid->emitOpError() << "expected a dense grid in a collective "
                                  "kernel, got a ragged one";
  return verifyExchange(*this);
}
