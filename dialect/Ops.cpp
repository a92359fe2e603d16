//===- Ops.cpp - verifiers and folds of accesses, rows and scalars --------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Mlafix.h"
#include "dialect/Origin.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlafix;

using OptionalOperand = std::optional<OpAsmParser::UnresolvedOperand>;

/// Parses the types of a mlafix.store_state: the type of the state, and those
/// of the payload and lse operands that are present.
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

/// Parses the type of a row and the result type of its reduction. If no result
/// type follows, it is `scalar`, or the row's element type if `scalar` is null.
static ParseResult parseReduceTypes(OpAsmParser &parser, Type &source,
                                    Type &result, Type scalar = {}) {
  if (parser.parseType(source))
    return failure();
  if (succeeded(parser.parseOptionalArrow()))
    return parser.parseType(result);
  result = scalar ? scalar : getElementTypeOrSelf(source);
  return success();
}

static void printReduceTypes(OpAsmPrinter &printer, Operation *, Type source,
                             Type result) {
  printer << source;
  if (isRowTile(result))
    printer << " -> " << result;
}

static ParseResult parseArgReduceTypes(OpAsmParser &parser, Type &source,
                                       Type &result) {
  return parseReduceTypes(parser, source, result,
                          parser.getBuilder().getI32Type());
}

static void printArgReduceTypes(OpAsmPrinter &printer, Operation *op,
                                Type source, Type result) {
  printReduceTypes(printer, op, source, result);
}

/// Parses the result types of a mlafix.top_k: a list whose first half has the
/// types of the values, and whose second half has those of the indices.
static ParseResult parseTopKTypes(OpAsmParser &parser,
                                  SmallVectorImpl<Type> &values,
                                  SmallVectorImpl<Type> &indices) {
  SmallVector<Type> types;
  if (parser.parseTypeList(types))
    return failure();
  size_t half = types.size() / 2;
  values.append(types.begin(), types.begin() + half);
  indices.append(types.begin() + half, types.end());
  return success();
}

static void printTopKTypes(OpAsmPrinter &printer, Operation *, TypeRange values,
                           TypeRange indices) {
  printer << values << ", " << indices;
}

/// Parses the types of a mlafix.merge: either one type, which all operands and
/// the result have, or `(`, the type of each operand, `)`, `->` and the type of
/// the result.
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

/// Parses the one type that all rows of a mlafix.store_members have.
static ParseResult
parseMemberTypes(OpAsmParser &parser, SmallVectorImpl<Type> &types,
                 ArrayRef<OpAsmParser::UnresolvedOperand> operands) {
  Type type;
  if (parser.parseType(type))
    return failure();
  types.assign(operands.size(), type);
  return success();
}

static void printMemberTypes(OpAsmPrinter &printer, Operation *,
                             TypeRange types, ValueRange) {
  printer << types.front();
}

#define GET_OP_CLASSES
#include "dialect/MlafixOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Patterns for all kinds of accesses
//===----------------------------------------------------------------------===//

/// Drops a predicate that is always true.
template <typename OpTy>
static LogicalResult dropTruePredicate(OpTy op, PatternRewriter &rewriter) {
  if (!op.getPredicate() || !matchPattern(op.getPredicate(), m_One()))
    return rewriter.notifyMatchFailure(op, "no predicate that is always true");
  rewriter.modifyOpInPlace(op, [&] { op.getPredicateMutable().clear(); });
  return success();
}

/// Erases an op whose predicate is always false.
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

void StoreStateOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                               MLIRContext *) {
  patterns.add(dropTruePredicate<StoreStateOp>);
  patterns.add(eraseIfFalse<StoreStateOp>);
}

//===----------------------------------------------------------------------===//
// Rows and scalars
//===----------------------------------------------------------------------===//

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

void StoreOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                          MLIRContext *) {
  patterns.add(dropTruePredicate<StoreOp>);
  patterns.add(eraseIfFalse<StoreOp>);
}

LogicalResult PresentOp::verify() {
  BlockArgument argument = getKernelArgument(getSource());
  if (!argument ||
      !getKernelOf(argument).isArgOptional(argument.getArgNumber()))
    return emitOpError() << "expected an argument of the kernel with '"
                         << kOptionalAttr << "', got "
                         << (argument ? "one without it"
                                      : describeOrigin(getSource()));
  return success();
}

LogicalResult SameTensorOp::verify() {
  auto lhs = cast<MemRefType>(getLhs().getType()),
       rhs = cast<MemRefType>(getRhs().getType());
  for (Value side : {getLhs(), getRhs()})
    if (!getKernelArgument(side))
      return emitOpError() << "expected two arguments of the kernel, got "
                           << describeOrigin(side);
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
