//===- Ops.cpp - verifiers and folds of the algebra, rows and scalars -*- C++
//-*-===//
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
  if (last != dim)
    return op->emitOpError()
           << "expected a row of '" << name << "' along dim "
           << (last ? last.str() : "without a name") << ", got " << dim.str();
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)) || strides.back() != 1)
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

/// Likewise for a store. A body does not know the width of an integer whose
/// dtype is a variable's: i32 and i64 are for all of them.
static LogicalResult verifyStored(StoreOp op) {
  Type element = cast<MemRefType>(op.getTarget().getType()).getElementType();
  Type value = getElementTypeOrSelf(op.getValue().getType());
  BlockArgument argument = getKernelArgument(op.getTarget());
  bool isVariable =
      argument &&
      cast<KernelOp>(argument.getOwner()->getParentOp())
          .getArgAttrOfType<StringAttr>(argument.getArgNumber(), kDTypeAttr);
  if (isVariable && element.isInteger() && !element.isInteger(1) &&
      (value.isInteger(32) || value.isInteger(64)))
    return success();
  return verifyElement(op, op.getTarget(), value);
}

/// Likewise for a load, which may widen integers.
static LogicalResult verifyLoaded(LoadOp op) {
  Type element = cast<MemRefType>(op.getSource().getType()).getElementType();
  Type result = getElementTypeOrSelf(op.getType());
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
// The algebra
//===----------------------------------------------------------------------===//

LogicalResult MakeStateOp::verify() {
  if (getRow().getType() == getType().getTileType())
    return success();
  return emitOpError() << "expected a row of " << getType().getTileType()
                       << " for the state, got " << getRow().getType();
}

static bool isIdentity(Value state) {
  return state.getDefiningOp<IdentityOp>() != nullptr;
}

OpFoldResult MergeOp::fold(FoldAdaptor) {
  return getStates().size() == 1 ? getStates().front() : OpFoldResult();
}

/// merge(a, identity) = merge(a).
static LogicalResult dropIdentities(MergeOp op, PatternRewriter &rewriter) {
  SmallVector<Value> live;
  llvm::copy_if(op.getStates(), std::back_inserter(live),
                [](Value state) { return !isIdentity(state); });
  if (live.size() == op.getStates().size())
    return rewriter.notifyMatchFailure(op, "no operand is the identity");
  if (live.empty())
    live.push_back(op.getStates().front());
  rewriter.modifyOpInPlace(op, [&] { op.getStatesMutable().assign(live); });
  return success();
}

/// merge(a, merge(b, c)) = merge(a, b, c), if nobody else needs the inner one.
static LogicalResult flattenMerges(MergeOp op, PatternRewriter &rewriter) {
  SmallVector<Value> flat;
  for (Value state : op.getStates()) {
    auto inner = state.getDefiningOp<MergeOp>();
    if (inner && inner->hasOneUse() && inner->getBlock() == op->getBlock())
      llvm::append_range(flat, inner.getStates());
    else
      flat.push_back(state);
  }
  if (flat.size() == op.getStates().size())
    return rewriter.notifyMatchFailure(op, "no operand is a merge of its own");
  rewriter.modifyOpInPlace(op, [&] { op.getStatesMutable().assign(flat); });
  return success();
}

void MergeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                          MLIRContext *) {
  patterns.add(dropIdentities);
  patterns.add(flattenMerges);
}

OpFoldResult MaskOp::fold(FoldAdaptor) {
  if (matchPattern(getPredicate(), m_One()) || isIdentity(getState()))
    return getState();
  return {};
}

/// mask(s, false) = identity.
static LogicalResult maskByFalse(MaskOp op, PatternRewriter &rewriter) {
  if (!matchPattern(op.getPredicate(), m_Zero()))
    return rewriter.notifyMatchFailure(op, "the predicate is not always false");
  rewriter.replaceOpWithNewOp<IdentityOp>(op, op.getType());
  return success();
}

/// mask(mask(s, p), q) = mask(s, p and q).
static LogicalResult maskOfMask(MaskOp op, PatternRewriter &rewriter) {
  auto inner = op.getState().getDefiningOp<MaskOp>();
  if (!inner)
    return rewriter.notifyMatchFailure(op, "the state is no mask");
  Value both = arith::AndIOp::create(rewriter, op.getLoc(),
                                     inner.getPredicate(), op.getPredicate());
  rewriter.replaceOpWithNewOp<MaskOp>(op, inner.getState(), both);
  return success();
}

/// mask(load_state if p, q) = load_state if p and q, if nobody else needs the
/// load and nothing is written in between.
static LogicalResult sinkMaskIntoLoad(MaskOp op, PatternRewriter &rewriter) {
  auto load = op.getState().getDefiningOp<LoadStateOp>();
  if (!load || !load->hasOneUse() || load->getBlock() != op->getBlock())
    return rewriter.notifyMatchFailure(op, "the state is no load of its own");
  if (mayWriteBetween(load, op))
    return rewriter.notifyMatchFailure(
        op, "memory may change between the load and the mask");
  Value predicate = op.getPredicate();
  if (load.getPredicate())
    predicate = arith::AndIOp::create(rewriter, op.getLoc(),
                                      load.getPredicate(), predicate);
  rewriter.replaceOpWithNewOp<LoadStateOp>(op, op.getType(), load.getOut(),
                                           load.getOutIndices(), load.getLse(),
                                           load.getLseIndices(), predicate);
  rewriter.eraseOp(load);
  return success();
}

void MaskOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                         MLIRContext *) {
  patterns.add(maskByFalse);
  patterns.add(maskOfMask);
  patterns.add(sinkMaskIntoLoad);
}

LogicalResult RebaseOp::verify() {
  if (getState().getType().getDim() != getType().getDim())
    return emitOpError() << "expected the same dim on both sides, got "
                         << getState().getType().getDim().str() << " and "
                         << getType().getDim().str();
  return success();
}

OpFoldResult RebaseOp::fold(FoldAdaptor) {
  return getState().getType() == getType() ? OpFoldResult(getState())
                                           : OpFoldResult();
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

LogicalResult ReduceOp::verify() {
  Type element = getElementTypeOrSelf(getSource().getType());
  if (!element.isF32() && !element.isInteger(32))
    return emitOpError() << "expected a row of f32 or i32, got " << element;
  return success();
}
