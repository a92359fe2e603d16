//===- GroupOps.cpp - broadcasts, reductions, scans and swaps of rows -----===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/Mlafix.h"

#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlafix;

/// Checks that rows of type `row` have one element for each group of rows of
/// type `groups`.
static LogicalResult verifyEachGroup(Operation *op, Type groups, Type row) {
  DimAttr product = getTileDim(groups), each = getTileDim(row);
  if (!product.isProduct())
    return op->emitOpError()
           << "expected a row along a product of dims, since the other row has "
              "one element for each of its groups, got one along "
           << product.str();
  if (each != product.getGroups() && each != product.getEachGroup())
    return op->emitOpError()
           << "expected a row along " << product.getGroups().str()
           << ", one element for each group of " << product.str()
           << ", got one along " << each.str();
  return success();
}

LogicalResult BroadcastOp::verify() {
  Type source = getElementTypeOrSelf(getSource().getType()),
       result = getElementTypeOrSelf(getType());
  if (source != result)
    return emitOpError() << "expected rows of one type, got " << source
                         << " and " << result;
  return verifyEachGroup(*this, getType(), getSource().getType());
}

/// Rewrites the broadcast of a splat as a splat.
LogicalResult BroadcastOp::canonicalize(BroadcastOp op,
                                        PatternRewriter &rewriter) {
  auto splat = op.getSource().getDefiningOp<SplatOp>();
  if (!splat)
    return rewriter.notifyMatchFailure(op, "the elements may be different");
  rewriter.replaceOpWithNewOp<SplatOp>(op, op.getType(), splat.getScalar());
  return success();
}

/// Checks that the elements of rows of type `row` are f32 or i32.
static LogicalResult verifyElement(Operation *op, Type row) {
  Type element = getElementTypeOrSelf(row);
  if (!element.isF32() && !element.isInteger(32))
    return op->emitOpError() << "expected a row of f32 or i32, got " << element;
  return success();
}

/// Checks the result type of a reduction of `row`. `to` is the type of one
/// result element.
static LogicalResult verifyReduced(Operation *op, Type row, Type result,
                                   Type to) {
  if (getElementTypeOrSelf(result) != to)
    return op->emitOpError() << "expected a result of " << to << ", got "
                             << getElementTypeOrSelf(result);
  return isRowTile(result) ? verifyEachGroup(op, row, result) : success();
}

LogicalResult ReduceOp::verify() {
  Type row = getSource().getType(), element = getElementTypeOrSelf(row);
  bool isOfBools = element.isInteger(1) && getKind() != ReduceKind::add;
  if (!isOfBools && !element.isF32() && !element.isInteger(32) &&
      !element.isInteger(64))
    return emitOpError() << "expected a row of f32, i32 or i64, or of i1 for "
                            "max or min, got "
                         << element;
  return verifyReduced(*this, row, getType(), getElementTypeOrSelf(row));
}

LogicalResult ArgReduceOp::verify() {
  if (getKind() == ReduceKind::add)
    return emitOpError() << "expected max or min, got add";
  if (failed(verifyElement(*this, getSource().getType())))
    return failure();
  return verifyReduced(*this, getSource().getType(), getType(),
                       IntegerType::get(getContext(), 32));
}

LogicalResult TopKOp::verify() {
  Type row = getSource().getType();
  if (failed(verifyElement(*this, row)))
    return failure();
  size_t count = getValues().size();
  if (count == 0 || getIndices().size() != count)
    return emitOpError()
           << "expected as many values as indices, one or more, got " << count
           << " and " << getIndices().size();
  Type index = IntegerType::get(getContext(), 32);
  for (auto [value, number] : llvm::zip(getValues(), getIndices()))
    if (failed(verifyReduced(*this, row, value.getType(),
                             getElementTypeOrSelf(row))) ||
        failed(verifyReduced(*this, row, number.getType(), index)))
      return failure();
  bool isOfGroups = isRowTile(getValues().front().getType());
  for (Type type : getResultTypes())
    if (isRowTile(type) != isOfGroups)
      return emitOpError()
             << "expected only scalars, of the whole row, or only "
                "rows, with one element per group, got both";
  DimAttr dim = getTileDim(row);
  if (isOfGroups)
    dim = dim.getGroup();
  if (!ShapedType::isDynamic(dim.getSize()) && dim.getSize() < int64_t(count))
    return emitOpError() << "expected a " << (isOfGroups ? "group" : "row")
                         << " of at least " << count << " elements, got "
                         << dim.getSize();
  return success();
}

LogicalResult ScanOp::verify() {
  if (failed(verifyElement(*this, getSource().getType())))
    return failure();
  DimAttr dim = getTileDim(getSource().getType());
  if (getInGroups() && !dim.isProduct())
    return emitOpError() << "expected a row along a product of dims to scan in "
                            "groups, got one along "
                         << dim.str();
  return success();
}

/// A swap exchanges adjacent blocks of `block` elements. Checks that the size
/// of a row is a multiple of 2 * block, so that both blocks are in the same
/// row. If the number of elements in a group is not a power of two, groups are
/// padded, so both blocks must be in the same group. In this case, checks the
/// size of a group instead.
LogicalResult SwapOp::verify() {
  if (failed(verifyElement(*this, getType())))
    return failure();
  int64_t block = getBlock();
  DimAttr dim = getTileDim(getType());
  if (block < 1 || !llvm::isPowerOf2_64(block))
    return emitOpError()
           << "expected a power of two as the number of elements in a block, "
              "got "
           << block;
  if (dim.isPerGroup())
    return emitOpError()
           << "expected a row that has more than one element per group of a "
              "product, got one along "
           << dim.str();
  if (dim.isBounded())
    return emitOpError()
           << "expected a row whose size is known when the kernel "
              "is compiled, got one along "
           << dim.str();
  if (!dim.isBound())
    return success();
  bool isWhole =
      !dim.isProduct() || llvm::isPowerOf2_64(dim.getGroup().getSize());
  int64_t size = (isWhole ? dim : dim.getGroup()).getSize();
  if (size % (2 * block) == 0)
    return success();
  return emitOpError() << "expected the size of a "
                       << (isWhole ? "row" : "group") << " to be a multiple of "
                       << 2 * block << ", two blocks of " << block
                       << " elements, got " << size;
}

/// Folds a swap of equal elements to its operand, and cancels two equal swaps.
OpFoldResult SwapOp::fold(FoldAdaptor constants) {
  if (getSource().getDefiningOp<SplatOp>() ||
      isa_and_nonnull<SplatElementsAttr>(constants.getSource()))
    return getSource();
  auto other = getSource().getDefiningOp<SwapOp>();
  return other && other.getBlock() == getBlock() ? other.getSource() : Value();
}

/// Folds a scan to its operand if each row or group has one element. Also folds
/// a running maximum or minimum of equal elements, or of another scan of the
/// same kind.
OpFoldResult ScanOp::fold(FoldAdaptor constants) {
  DimAttr dim = getTileDim(getType());
  if ((getInGroups() ? dim.getGroup() : dim).getSize() == 1)
    return getSource();
  if (getKind() == ReduceKind::add)
    return {};
  auto scan = getSource().getDefiningOp<ScanOp>();
  bool isScanned = scan && scan.getKind() == getKind() &&
                   scan.getInGroups() == getInGroups();
  bool isOfOneValue = getSource().getDefiningOp<SplatOp>() ||
                      isa_and_nonnull<SplatElementsAttr>(constants.getSource());
  return isScanned || isOfOneValue ? getSource() : Value();
}
