//===- Ops.cpp - verifiers and folds of accesses, rows and scalars --------===//
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
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlafix;

using OptionalOperand = std::optional<OpAsmParser::UnresolvedOperand>;

/// The types of a state and of the payload and the lse that it is stored to, as
/// far as these are there.
static ParseResult parseStoreTypes(OpAsmParser &parser, Type &state,
                                   Type &outType, Type &lseType,
                                   const OptionalOperand &out,
                                   const OptionalOperand &lse) {
  StateType stateType;
  if (parser.parseCustomTypeWithFallback(stateType))
    return failure();
  state = stateType;
  if (out && (parser.parseComma() || parser.parseType(outType)))
    return failure();
  if (lse && (parser.parseComma() || parser.parseType(lseType)))
    return failure();
  return success();
}

static void printStoreTypes(OpAsmPrinter &printer, Operation *, Type state,
                            Type outType, Type lseType, Value out, Value lse) {
  printer.printStrippedAttrOrType(cast<StateType>(state));
  if (out)
    printer << ", " << outType;
  if (lse)
    printer << ", " << lseType;
}

/// The types of a row and of what a reduction makes of it, which may be left
/// out where it is `scalar` (null: the row's element).
static ParseResult parseRowAndResult(OpAsmParser &parser, Type &source,
                                     Type &result, Type scalar) {
  if (parser.parseType(source))
    return failure();
  if (succeeded(parser.parseOptionalArrow()))
    return parser.parseType(result);
  result = scalar ? scalar : getElementTypeOrSelf(source);
  return success();
}

static void printRowAndResult(OpAsmPrinter &printer, Type source, Type result) {
  printer << source;
  if (isRowTile(result))
    printer << " -> " << result;
}

static ParseResult parseReduceTypes(OpAsmParser &parser, Type &source,
                                    Type &result) {
  return parseRowAndResult(parser, source, result, Type());
}

static void printReduceTypes(OpAsmPrinter &printer, Operation *, Type source,
                             Type result) {
  printRowAndResult(printer, source, result);
}

static ParseResult parseArgReduceTypes(OpAsmParser &parser, Type &source,
                                       Type &result) {
  return parseRowAndResult(parser, source, result,
                           parser.getBuilder().getI32Type());
}

static void printArgReduceTypes(OpAsmPrinter &printer, Operation *, Type source,
                                Type result) {
  printRowAndResult(printer, source, result);
}

/// One type where the operands and the result have the same one, else a type
/// for each.
static ParseResult
parseMergeTypes(OpAsmParser &parser, SmallVectorImpl<Type> &states,
                Type &result,
                ArrayRef<OpAsmParser::UnresolvedOperand> operands) {
  if (succeeded(parser.parseOptionalLParen()))
    return failure(parser.parseTypeList(states) || parser.parseRParen() ||
                   parser.parseArrow() || parser.parseType(result));
  StateType type;
  if (parser.parseCustomTypeWithFallback(type))
    return failure();
  result = type;
  states.assign(operands.size(), result);
  return success();
}

static void printMergeTypes(OpAsmPrinter &printer, Operation *,
                            TypeRange states, Type result, ValueRange) {
  if (llvm::any_of(states, [&](Type type) { return type != result; }))
    printer << '(' << states << ") -> " << result;
  else
    printer.printStrippedAttrOrType(cast<StateType>(result));
}

#define GET_OP_CLASSES
#include "dialect/MlafixOps.cpp.inc"

//===----------------------------------------------------------------------===//
// What memory accesses have in common
//===----------------------------------------------------------------------===//

/// Whether `memref` is a buffer that holds what a lane has of a row of `dim`,
/// and nothing else (mlafix-buffer-rows).
static bool isRowBuffer(Value memref, size_t indices, DimAttr dim) {
  auto type = cast<MemRefType>(memref.getType());
  return dim && indices == 0 && type.getRank() == 1 && type.hasStaticShape() &&
         memref.getDefiningOp<memref::AllocaOp>();
}

/// Checks that `memref[indices]` is a row of `dim` (or, without a dim, an
/// element) of a kernel argument, and that the argument's access allows it; or
/// that `memref` is a buffer of such a row.
static LogicalResult verifyAccess(Operation *op, Value memref, size_t indices,
                                  DimAttr dim, bool writes, StringRef what) {
  auto type = cast<MemRefType>(memref.getType());
  if (isRowBuffer(memref, indices, dim))
    return success();
  BlockArgument argument = getKernelArgument(memref);
  if (!argument)
    return op->emitOpError()
           << "expected the " << what
           << " to be an argument of the kernel, got another value";
  auto kernel = cast<KernelOp>(argument.getOwner()->getParentOp());
  StringRef name = kernel.getArgName(argument.getArgNumber());
  StringRef access = kernel.getArgAccess(argument.getArgNumber());
  if (writes && access == "read")
    return op->emitOpError()
           << "expected '" << name
           << "' to be writable to store to it, got access \"read\"";

  int64_t expected = type.getRank() - (dim ? 1 : 0);
  if (static_cast<int64_t>(indices) != expected)
    return op->emitOpError() << "expected " << expected << " indices for "
                             << (dim ? "a row" : "an element") << " of '"
                             << name << "', got " << indices;
  if (!dim)
    return success();
  DimAttr last = getArgumentDim(memref, type.getRank() - 1);
  if (last != (dim.isPerGroup() ? dim.getGroups() : dim))
    return op->emitOpError()
           << "expected a row of '" << name << "' along dim "
           << (last ? last.str() : "without a name") << ", got " << dim.str();
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)) ||
      (strides.back() != 1 && !dim.isPerGroup() && !getProductOf(kernel, dim)))
    return op->emitOpError() << "expected the last dim of '" << name
                             << "' to have stride 1 (N12), got " << type;
  return success();
}

/// Checks payload and lse of a state in memory.
static LogicalResult verifyStateAccess(Operation *op, StateType state,
                                       Value out, size_t outIndices, Value lse,
                                       size_t lseIndices, bool writes) {
  if (out) {
    if (failed(verifyAccess(op, out, outIndices, state.getDim(), writes,
                            "payload")))
      return failure();
    Type element = cast<MemRefType>(out.getType()).getElementType();
    if (!isa<FloatType>(element))
      return op->emitOpError()
             << "expected a payload of floats, got " << element;
  }
  if (lse) {
    if (failed(verifyAccess(op, lse, lseIndices, DimAttr(), writes, "lse")))
      return failure();
    Type element = cast<MemRefType>(lse.getType()).getElementType();
    if (!element.isF32())
      return op->emitOpError() << "expected an lse of f32, got " << element;
  }
  return success();
}

/// Checks that a value of `valueType` is what an element of `memref` becomes in
/// a body.
static LogicalResult verifyElement(Operation *op, Value memref,
                                   Type valueType) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  Type expected = getComputeType(element),
       got = getElementTypeOrSelf(valueType);
  if (expected != got)
    return op->emitOpError()
           << "expected " << expected << " for elements of type " << element
           << ", got " << got;
  return success();
}

/// Whether elements of `memref` are those of a dtype variable of integers,
/// whatever it is bound to. A variable of floats that is bound looks alike:
/// mlafix-specialize has seen to the difference.
static bool isOfIntegerVariable(Value memref) {
  StringAttr variable = getDTypeVariable(memref);
  if (!variable)
    return false;
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  if (element.isInteger() && !element.isInteger(1))
    return true;
  auto kernel =
      cast<KernelOp>(getKernelArgument(memref).getOwner()->getParentOp());
  std::optional<DictionaryAttr> bindings = kernel.getBindings();
  return bindings && bindings->contains(variable);
}

/// Likewise for a store. A body does not know the width of an integer whose
/// dtype is a variable's: i32 and i64 are for all of them. Bytes take numbers
/// of any type.
static LogicalResult verifyStored(StoreOp op) {
  Type element = cast<MemRefType>(op.getTarget().getType()).getElementType();
  Type value = getElementTypeOrSelf(op.getValue().getType());
  bool isInteger = value.isInteger(32) || value.isInteger(64);
  if (isInteger && isOfIntegerVariable(op.getTarget()))
    return success();
  if (element.isInteger(8) && (isInteger || value.isF32()))
    return success();
  return verifyElement(op, op.getTarget(), value);
}

/// Likewise for a load, which may widen integers, or move the bits of what a
/// variable of integers is bound to.
static LogicalResult verifyLoaded(LoadOp op) {
  Type element = cast<MemRefType>(op.getSource().getType()).getElementType();
  Type result = getElementTypeOrSelf(op.getType());
  if (result.isInteger(64) && isOfIntegerVariable(op.getSource()))
    return success();
  bool widens = element.isInteger() && !element.isInteger(1) &&
                result.isSignlessInteger() && result != element;
  if (!widens)
    return verifyElement(op, op.getSource(), op.getType());
  if (result.getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth())
    return op.emitOpError()
           << "expected an integer of at least "
           << element.getIntOrFloatBitWidth() << " bits for elements of type "
           << element << ", got " << result;
  return success();
}

/// A true predicate is none.
template <typename OpTy>
static LogicalResult dropTruePredicate(OpTy op, PatternRewriter &rewriter) {
  if (!op.getPredicate() || !matchPattern(op.getPredicate(), m_One()))
    return rewriter.notifyMatchFailure(op, "no predicate that is always true");
  rewriter.modifyOpInPlace(op, [&] { op.getPredicateMutable().clear(); });
  return success();
}

/// An op whose predicate is false has no effect.
template <typename OpTy>
static LogicalResult eraseIfFalse(OpTy op, PatternRewriter &rewriter) {
  if (!op.getPredicate() || !matchPattern(op.getPredicate(), m_Zero()))
    return rewriter.notifyMatchFailure(op, "no predicate that is always false");
  rewriter.eraseOp(op);
  return success();
}

//===----------------------------------------------------------------------===//
// States in memory
//===----------------------------------------------------------------------===//

LogicalResult LoadStateOp::verify() {
  return verifyStateAccess(*this, getType(), getOut(), getOutIndices().size(),
                           getLse(), getLseIndices().size(),
                           /*writes=*/false);
}

static LogicalResult loadOfNothing(LoadStateOp op, PatternRewriter &rewriter) {
  if (!op.getPredicate() || !matchPattern(op.getPredicate(), m_Zero()))
    return rewriter.notifyMatchFailure(op, "no predicate that is always false");
  rewriter.replaceOpWithNewOp<IdentityOp>(op, op.getType());
  return success();
}

void LoadStateOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *) {
  patterns.add(dropTruePredicate<LoadStateOp>);
  patterns.add(loadOfNothing);
}

LogicalResult StoreStateOp::verify() {
  if (!getOut() && !getLse())
    return emitOpError()
           << "expected a payload, an lse or both to store to, got neither";
  if (getScale() && !getOut())
    return emitOpError() << "expected a payload beside the scale, got none";
  return verifyStateAccess(*this, getState().getType(), getOut(),
                           getOutIndices().size(), getLse(),
                           getLseIndices().size(), /*writes=*/true);
}

void StoreStateOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                               MLIRContext *) {
  patterns.add(dropTruePredicate<StoreStateOp>);
  patterns.add(eraseIfFalse<StoreStateOp>);
}

//===----------------------------------------------------------------------===//
// Rows and scalars
//===----------------------------------------------------------------------===//

LogicalResult LoadOp::verify() {
  DimAttr dim = isRowTile(getType()) ? getTileDim(getType()) : DimAttr();
  if (failed(verifyAccess(*this, getSource(), getIndices().size(), dim,
                          /*writes=*/false, "source")) ||
      failed(verifyLoaded(*this)))
    return failure();
  if (getOther() && !getPredicate())
    return emitOpError()
           << "expected a predicate beside the 'else' value, got none";
  return success();
}

void LoadOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                         MLIRContext *) {
  patterns.add(+[](LoadOp op, PatternRewriter &rewriter) -> LogicalResult {
    if (!op.getPredicate() || !matchPattern(op.getPredicate(), m_One()))
      return rewriter.notifyMatchFailure(op,
                                         "no predicate that is always true");
    rewriter.modifyOpInPlace(op, [&] {
      op.getOtherMutable().clear();
      op.getPredicateMutable().clear();
    });
    return success();
  });
}

LogicalResult StoreOp::verify() {
  DimAttr dim = isRowTile(getValue().getType())
                    ? getTileDim(getValue().getType())
                    : DimAttr();
  if (failed(verifyAccess(*this, getTarget(), getIndices().size(), dim,
                          /*writes=*/true, "target")))
    return failure();
  return verifyStored(*this);
}

void StoreOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                          MLIRContext *) {
  patterns.add(dropTruePredicate<StoreOp>);
  patterns.add(eraseIfFalse<StoreOp>);
}

LogicalResult PresentOp::verify() {
  BlockArgument argument = getKernelArgument(getSource());
  if (!argument || !cast<KernelOp>(argument.getOwner()->getParentOp())
                        .isArgOptional(argument.getArgNumber()))
    return emitOpError() << "expected an argument of the kernel with '"
                         << kOptionalAttr << "', got another value";
  return success();
}

LogicalResult SameTensorOp::verify() {
  auto lhs = cast<MemRefType>(getLhs().getType()),
       rhs = cast<MemRefType>(getRhs().getType());
  if (!getKernelArgument(getLhs()) || !getKernelArgument(getRhs()))
    return emitOpError()
           << "expected two arguments of the kernel, got another value";
  if (lhs.getRank() != rhs.getRank() ||
      lhs.getElementType() != rhs.getElementType())
    return emitOpError() << "expected tensors of one rank and dtype, got "
                         << lhs << " and " << rhs;
  return success();
}

LogicalResult SameTensorOp::canonicalize(SameTensorOp op,
                                         PatternRewriter &rewriter) {
  if (op.getLhs() != op.getRhs())
    return rewriter.notifyMatchFailure(op, "two different arguments");
  rewriter.replaceOpWithNewOp<arith::ConstantIntOp>(op, true, 1);
  return success();
}

LogicalResult IotaOp::verify() {
  Type element = getElementTypeOrSelf(getType());
  if (!element.isInteger(32))
    return emitOpError() << "expected a row of i32, got " << element;
  return success();
}
