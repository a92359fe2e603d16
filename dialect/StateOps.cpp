//===- StateOps.cpp - the algebra of states -------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Mlafix.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlafix;

LogicalResult MakeStateOp::verify() {
  if (getRow().getType() == getType().getTileType())
    return success();
  return emitOpError() << "expected a row of " << getType().getTileType()
                       << " for the state, got " << getRow().getType();
}

static bool isIdentity(Value state) {
  return state.getDefiningOp<IdentityOp>() != nullptr;
}

LogicalResult MergeOp::verify() {
  if (getStates().empty())
    return emitOpError() << "expected at least one state to merge, got none";
  StateType result = getType();
  unsigned sinks = 0;
  for (Value state : getStates()) {
    auto type = cast<StateType>(state.getType());
    if (type.withSink(result.getSink()) != result)
      return emitOpError() << "expected states of the dim and base of "
                           << result << " (N8), got " << type;
    sinks += type.getSink();
  }
  if (sinks > 1)
    return emitOpError() << "expected at most one state with a sink, which "
                            "counts once, got "
                         << sinks;
  if (sinks && !result.getSink())
    return emitOpError() << "expected a result with a sink, as an operand has "
                            "one, got "
                         << result;
  return success();
}

OpFoldResult MergeOp::fold(FoldAdaptor) {
  bool isCopy =
      getStates().size() == 1 && getStates().front().getType() == getType();
  return isCopy ? getStates().front() : OpFoldResult();
}

/// Removes identities: merge(a, identity) = merge(a), and a merge of identities
/// is the identity.
static LogicalResult dropIdentities(MergeOp op, PatternRewriter &rewriter) {
  SmallVector<Value> live;
  llvm::copy_if(op.getStates(), std::back_inserter(live),
                [](Value state) { return !isIdentity(state); });
  if (live.size() == op.getStates().size())
    return rewriter.notifyMatchFailure(op, "no operand is the identity");
  if (live.empty()) {
    rewriter.replaceOpWithNewOp<IdentityOp>(op, op.getType());
    return success();
  }
  rewriter.modifyOpInPlace(op, [&] { op.getStatesMutable().assign(live); });
  return success();
}

/// Flattens merge(a, merge(b, c)) to merge(a, b, c) if the inner merge has no
/// other use. An inner merge with `to_first` is flattened only if it is the
/// first operand of an outer merge with `to_first`. Otherwise the states of the
/// inner merge would no longer be weighed relative to its first operand.
static LogicalResult flattenMerges(MergeOp op, PatternRewriter &rewriter) {
  SmallVector<Value> flat;
  for (Value state : op.getStates()) {
    auto inner = state.getDefiningOp<MergeOp>();
    bool fits = inner && (!inner.getToFirst() ||
                          (op.getToFirst() && state == op.getStates().front()));
    if (fits && inner->hasOneUse() && inner->getBlock() == op->getBlock())
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

/// Rewrites mask(s, false) as the identity.
static LogicalResult maskByFalse(MaskOp op, PatternRewriter &rewriter) {
  if (!matchPattern(op.getPredicate(), m_Zero()))
    return rewriter.notifyMatchFailure(op, "the predicate is not always false");
  rewriter.replaceOpWithNewOp<IdentityOp>(op, op.getType());
  return success();
}

/// Rewrites mask(mask(s, p), q) as mask(s, p and q).
static LogicalResult maskOfMask(MaskOp op, PatternRewriter &rewriter) {
  auto inner = op.getState().getDefiningOp<MaskOp>();
  if (!inner)
    return rewriter.notifyMatchFailure(op, "the state is no mask");
  Value both = arith::AndIOp::create(rewriter, op.getLoc(),
                                     inner.getPredicate(), op.getPredicate());
  rewriter.replaceOpWithNewOp<MaskOp>(op, inner.getState(), both);
  return success();
}

/// Rewrites mask(s, q), where s is loaded with predicate p, as a load with
/// predicate (p and q). The load must have no other use, and no op between the
/// load and the mask may write memory.
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
  if (getState().getType().getSink() != getType().getSink())
    return emitOpError() << "expected a sink on both sides or on none, got "
                         << getState().getType() << " and " << getType();
  return success();
}

OpFoldResult RebaseOp::fold(FoldAdaptor) {
  return getState().getType() == getType() ? OpFoldResult(getState())
                                           : OpFoldResult();
}
