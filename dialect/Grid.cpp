//===- Grid.cpp - mlafix.forall and mlafix.ragged_forall -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Mlafix.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlafix;

/// Parses `(%a, %b) in (%x, %y)`: the index arguments of the body, and the
/// operands of the grid.
static ParseResult
parseHeader(OpAsmParser &parser,
            SmallVectorImpl<OpAsmParser::Argument> &arguments,
            SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands) {
  if (parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren) ||
      parser.parseKeyword("in") ||
      parser.parseOperandList(operands, OpAsmParser::Delimiter::Paren))
    return failure();
  for (OpAsmParser::Argument &argument : arguments)
    argument.type = parser.getBuilder().getIndexType();
  return success();
}

/// If `index` is a size of a kernel argument, returns that argument, else null.
static BlockArgument getArgumentOfDim(Value index) {
  auto dim = index.getDefiningOp<memref::DimOp>();
  return dim && dim.getConstantIndex() ? getKernelArgument(dim.getSource())
                                       : BlockArgument();
}

static bool isOptional(BlockArgument argument) {
  return getKernelOf(argument).isArgOptional(argument.getArgNumber());
}

bool mlafix::isKnownAtLaunch(Value index) {
  if (matchPattern(index, m_Constant()) || getKernelArgument(index))
    return true;
  if (BlockArgument argument = getArgumentOfDim(index))
    return !isOptional(argument);
  auto cast = index.getDefiningOp<arith::IndexCastOp>();
  return cast && getKernelArgument(cast.getIn()) &&
         !cast.getIn().getType().isInteger(1);
}

/// Returns true if `dim` takes a size of a kernel argument, and binding the
/// kernel's names fixes this size. The size must be static, have an upper-case
/// name or be a product, and every call must pass the argument.
static bool isBoundSize(memref::DimOp dim) {
  BlockArgument argument = getArgumentOfDim(dim);
  std::optional<int64_t> position = dim.getConstantIndex();
  if (!argument || isOptional(argument))
    return false;
  auto type = cast<MemRefType>(argument.getType());
  if (*position >= type.getRank())
    return false;
  if (!type.isDynamicDim(*position))
    return true;
  KernelOp kernel = getKernelOf(argument);
  ArrayAttr dims = kernel.getArgDims(argument.getArgNumber());
  StringRef name = dims ? cast<StringAttr>(dims[*position]).getValue() : "";
  return Factors::of(name) || isConstantName(name);
}

/// Returns true if `index` becomes a constant when the kernel's names are
/// bound, because it is arithmetic on constants and on sizes that binding
/// fixes. Until the names are bound, a grid extent may also be such a value.
static bool isKnownOnceBound(Value index) {
  SetVector<Value> pending;
  pending.insert(index);
  for (size_t i = 0; i < pending.size(); ++i) { // `pending` grows meanwhile
    Value value = pending[i];
    if (matchPattern(value, m_Constant()))
      continue;
    Operation *op = value.getDefiningOp();
    if (auto dim = dyn_cast_or_null<memref::DimOp>(op)) {
      if (!isBoundSize(dim))
        return false;
      continue;
    }
    if (!op || !isa<arith::ArithDialect>(op->getDialect()))
      return false;
    pending.insert_range(op->getOperands());
  }
  return true;
}

static LogicalResult verifyExtent(Operation *op, Value extent) {
  APInt value;
  if (matchPattern(extent, m_ConstantInt(&value)) && value.isNegative())
    return op->emitOpError() << "expected extents that are not negative, got "
                             << value.getSExtValue();
  if (isKnownAtLaunch(extent))
    return success();
  // Before the names are bound, accept an extent that binding replaces by a
  // constant.
  auto parent = op->getParentOfType<KernelOp>();
  bool isBound = parent && (parent.getBindings() || parent.getPlanAttr());
  if (!isBound && isKnownOnceBound(extent))
    return success();
  if (BlockArgument argument = getArgumentOfDim(extent)) {
    KernelOp kernel = getKernelOf(argument);
    return op->emitOpError()
           << "expected extents of tensors that are always given, got a dim of "
              "'"
           << kernel.getArgName(argument.getArgNumber())
           << "', which is optional; pass the extent as an integer argument";
  }
  InFlightDiagnostic diag = op->emitOpError()
                            << "expected every extent to be a dim of an "
                               "argument, an integer argument, a constant or "
                               "computed from upper-case dims, got one that is "
                               "computed from other values: pass it as an "
                               "argument";
  diag.attachNote(extent.getLoc()) << "computed here";
  return diag;
}

static LogicalResult verifyIndices(Operation *op, Block &block, size_t expected,
                                   StringRef region) {
  if (block.getNumArguments() != expected)
    return op->emitOpError() << "expected " << expected << " indices in the "
                             << region << ", got " << block.getNumArguments();
  for (BlockArgument argument : block.getArguments())
    if (!argument.getType().isIndex())
      return op->emitOpError()
             << "expected indices of type index, got " << argument.getType();
  return success();
}

//===----------------------------------------------------------------------===//
// mlafix.forall
//===----------------------------------------------------------------------===//

ParseResult ForallOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> extents;
  Region *body = result.addRegion();
  if (parseHeader(parser, arguments, extents) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.resolveOperands(extents, parser.getBuilder().getIndexType(),
                             result.operands) ||
      parser.parseRegion(*body, arguments))
    return failure();
  ensureTerminator(*body, parser.getBuilder(), result.location);
  return success();
}

void ForallOp::print(OpAsmPrinter &printer) {
  printer << " (" << getBody().getArguments() << ") in (" << getExtents()
          << ")";
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs());
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/false);
}

LogicalResult ForallOp::verify() {
  if (getExtents().empty())
    return emitOpError() << "expected at least one extent, got none";
  if (failed(
          verifyIndices(*this, getBody().front(), getExtents().size(), "body")))
    return failure();
  for (Value extent : getExtents())
    if (failed(verifyExtent(*this, extent)))
      return failure();
  if (auto yield = dyn_cast<YieldOp>(getBody().front().getTerminator());
      yield && !yield.getValues().empty())
    return emitOpError() << "expected a body that yields nothing, got "
                         << yield.getValues().size() << " values";
  return success();
}

//===----------------------------------------------------------------------===//
// mlafix.ragged_forall
//===----------------------------------------------------------------------===//

ParseResult RaggedForallOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  Type cuSeqlens;
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (parseHeader(parser, arguments, operands) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseColonType(cuSeqlens))
    return failure();
  if (operands.size() < 2 || arguments.size() != operands.size())
    return parser.emitError(loc)
           << "expected (%segment, %row, inner indices…) in (%cu_seqlens, "
              "%rows, inner extents…), got "
           << arguments.size() << " indices and " << operands.size()
           << " operands";
  Type index = parser.getBuilder().getIndexType();
  if (parser.resolveOperand(operands.front(), cuSeqlens, result.operands) ||
      parser.resolveOperands(ArrayRef(operands).drop_front(), index,
                             result.operands))
    return failure();
  Region *predicate = result.addRegion(), *body = result.addRegion();
  if (parser.parseKeyword("where") ||
      parser.parseRegion(*predicate, ArrayRef(arguments).take_front(1)) ||
      parser.parseKeyword("do") || parser.parseRegion(*body, arguments))
    return failure();
  if (body->empty())
    return parser.emitError(loc) << "expected a body, got an empty region";
  if (body->front().empty() ||
      !body->front().back().hasTrait<OpTrait::IsTerminator>()) {
    OpBuilder b(parser.getContext());
    b.setInsertionPointToEnd(&body->front());
    YieldOp::create(b, result.location);
  }
  return success();
}

void RaggedForallOp::print(OpAsmPrinter &printer) {
  printer << " (" << getBody().getArguments() << ") in (" << getCuSeqlens()
          << ", " << getRows();
  for (Value extent : getInner())
    printer << ", " << extent;
  printer << ")";
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs());
  printer << " : " << getCuSeqlens().getType() << " where ";
  // The predicate's argument is printed with the name of the body's first
  // argument.
  printer.shadowRegionArgs(getPredicate(),
                           ValueRange(getBody().getArgument(0)));
  printer.printRegion(getPredicate(), /*printEntryBlockArgs=*/false);
  printer << " do ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/false);
}

LogicalResult RaggedForallOp::verify() {
  auto type = cast<MemRefType>(getCuSeqlens().getType());
  if (!getKernelArgument(getCuSeqlens()) || type.getRank() != 1 ||
      !type.getElementType().isInteger(32))
    return emitOpError() << "expected cu_seqlens to be a kernel argument of "
                            "rank 1 and type i32, got "
                         << type;
  if (isOptional(getKernelArgument(getCuSeqlens())))
    return emitOpError() << "expected cu_seqlens to be always given, got an "
                            "optional argument";
  if (failed(verifyIndices(*this, getPredicate().front(), 1, "predicate")) ||
      failed(verifyIndices(*this, getBody().front(), 2 + getInner().size(),
                           "body")) ||
      failed(verifyExtent(*this, getRows())))
    return failure();
  for (Value extent : getInner())
    if (failed(verifyExtent(*this, extent)))
      return failure();
  return success();
}

LogicalResult RaggedForallOp::verifyRegions() {
  auto yield = dyn_cast_if_present<YieldOp>(
      getPredicate().front().empty() ? nullptr
                                     : &getPredicate().front().back());
  if (!yield || yield.getValues().size() != 1 ||
      !yield.getValues()[0].getType().isInteger(1))
    return emitOpError() << "expected a predicate that yields one i1, got "
                         << (yield ? yield.getValues().size() : 0) << " values"
                         << (yield && yield.getValues().size() == 1
                                 ? " of another type"
                                 : "");
  auto bodyYield = dyn_cast_if_present<YieldOp>(
      getBody().front().empty() ? nullptr : &getBody().front().back());
  if (!bodyYield || !bodyYield.getValues().empty())
    return emitOpError() << "expected a body that yields nothing, got "
                         << (bodyYield ? "values" : "no yield");
  WalkResult walk = getPredicate().walk([&](Operation *op) {
    auto effects = dyn_cast<MemoryEffectOpInterface>(op);
    bool writes = effects && effects.hasEffect<MemoryEffects::Write>();
    auto isRow = [](Type t) { return isRowTile(t) || isa<StateType>(t); };
    bool hasRow = llvm::any_of(op->getResultTypes(), isRow) ||
                  llvm::any_of(op->getOperandTypes(), isRow);
    if (!writes && !hasRow)
      return WalkResult::advance();
    op->emitOpError()
        << "expected only scalar reads in the predicate of a ragged grid, got "
        << (writes ? "a write" : "a row");
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}
