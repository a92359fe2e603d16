//===- LowerArgReduce.cpp - indices of extremes ---------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/LowerArgReduce.h"
#include "dialect/Mlafix.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace mlafix;

namespace {
/// The least of the indices at which the extreme is, or a NaN: the reduction
/// gives NaN if there is one, which no element equals.
struct LowerArgReduce : OpConversionPattern<ArgReduceOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(ArgReduceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value row = op.getSource();
    Type element = getElementTypeOrSelf(row.getType());
    DimAttr dim = getTileDim(row.getType());
    bool isOfGroups = isRowTile(op.getType());
    Type indices = getRowTileType(dim, rewriter.getI32Type());
    Type reduced = isOfGroups
                       ? getRowTileType(getTileDim(op.getType()), element)
                       : element;
    Value extreme = ReduceOp::create(rewriter, loc, reduced, op.getKind(), row);
    extreme =
        isOfGroups
            ? Value(BroadcastOp::create(rewriter, loc, row.getType(), extreme))
            : Value(SplatOp::create(rewriter, loc, row.getType(), extreme));
    Value isHere;
    if (element.isF32()) {
      isHere = arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::OEQ,
                                     row, extreme);
      Value isNaN = arith::CmpFOp::create(rewriter, loc,
                                          arith::CmpFPredicate::UNO, row, row);
      isHere = arith::OrIOp::create(rewriter, loc, isHere, isNaN);
    } else {
      isHere = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq,
                                     row, extreme);
    }
    Value none = SplatOp::create(
        rewriter, loc, indices,
        arith::ConstantIntOp::create(rewriter, loc, INT32_MAX, 32));
    Value all = IotaOp::create(rewriter, loc, indices);
    Value index = arith::SelectOp::create(rewriter, loc, isHere, all, none);
    Value least =
        ReduceOp::create(rewriter, loc, op.getType(), ReduceKind::min, index);
    if (isOfGroups) { // where each group begins is 0
      Value first =
          ReduceOp::create(rewriter, loc, op.getType(), ReduceKind::min, all);
      least = arith::SubIOp::create(rewriter, loc, least, first);
    }
    rewriter.replaceOp(op, least);
    return success();
  }
};
} // namespace

void mlafix::populateLowerArgReducePatterns(RewritePatternSet &patterns,
                                            const TypeConverter &converter) {
  patterns.add<LowerArgReduce>(converter, patterns.getContext());
}
