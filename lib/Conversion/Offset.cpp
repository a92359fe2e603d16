//===- Offset.cpp - where an element lies --------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/Offset.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlafix;

/// x, where the indices are x / size and x % size; else null.
static Value joinIndices(Value quotient, Value remainder, int64_t size) {
  auto strip = [](Value index) {
    auto cast = index.getDefiningOp<arith::IndexCastUIOp>();
    return cast ? cast.getIn() : index;
  };
  auto isSize = [&](Value value) {
    APInt constant;
    return matchPattern(value, m_ConstantInt(&constant)) &&
           constant.getSExtValue() == size;
  };
  auto div = strip(quotient).getDefiningOp<arith::DivUIOp>();
  auto rem = strip(remainder).getDefiningOp<arith::RemUIOp>();
  return div && rem && div.getLhs() == rem.getLhs() && isSize(div.getRhs()) &&
                 isSize(rem.getRhs())
             ? div.getLhs()
             : Value();
}

/// Of an index, or of the number that indices were made of.
static Value toI64(OpBuilder &b, Location loc, Value index) {
  Type i64 = b.getI64Type();
  if (index.getType().isIndex())
    return arith::IndexCastOp::create(b, loc, i64, index);
  return index.getType() == i64
             ? index
             : Value(arith::ExtUIOp::create(b, loc, i64, index));
}

Value mlafix::buildOffset(
    OpBuilder &b, Location loc, ValueRange indices, ArrayRef<int64_t> strides,
    llvm::function_ref<Value(unsigned dim)> dynamicStride) {
  auto add = [&](Value x, Value y) -> Value {
    return x ? Value(arith::AddIOp::create(b, loc, x, y)) : y;
  };
  auto scale = [&](Value x, int64_t factor) -> Value {
    return factor == 1 ? x
                       : Value(arith::MulIOp::create(
                             b, loc, x,
                             arith::ConstantIntOp::create(b, loc, factor, 64)));
  };
  Value offset, factored; // the latter in units of `unit` elements
  Value joined;           // the index that is all of `factored`, if one is
  int64_t unit = 1;
  for (auto [dim, index, stride] : llvm::enumerate(indices, strides)) {
    if (ShapedType::isDynamic(stride)) {
      offset = add(offset, arith::MulIOp::create(b, loc, toI64(b, loc, index),
                                                 dynamicStride(unsigned(dim))));
      continue;
    }
    if (stride <= 0 || (factored && unit % stride != 0)) {
      offset = add(offset, scale(toI64(b, loc, index), stride));
      continue;
    }
    if (!factored)
      joined = index;
    else if (joined)
      joined = joinIndices(joined, index, unit / stride);
    factored = joined
                   ? toI64(b, loc, joined)
                   : add(scale(factored, unit / stride), toI64(b, loc, index));
    unit = stride;
  }
  return factored ? add(offset, scale(factored, unit)) : offset;
}

Value mlafix::buildTiledOffset(OpBuilder &b, Location loc, Value row,
                               Value column, int64_t columns, Value pitch) {
  constexpr int64_t kRows = 128, kMostColumns = int64_t(1) << 23;
  Type i64 = b.getI64Type();
  bool isShort = !ShapedType::isDynamic(columns) && columns <= kMostColumns;
  Type type = isShort ? b.getI32Type() : i64;
  auto shorten = [&](Value x) -> Value {
    return isShort ? arith::TruncIOp::create(b, loc, type, x) : x;
  };
  auto number = [&](Value like, int64_t value) {
    return arith::ConstantIntOp::create(b, loc, like.getType(), value);
  };
  auto above = [&](Value x, int64_t bits) -> Value {
    return arith::ShRUIOp::create(b, loc, x, number(x, bits));
  };
  auto bits = [&](Value x, int64_t mask) -> Value {
    return arith::AndIOp::create(b, loc, x, number(x, mask));
  };
  auto times = [&](Value x, int64_t factor) -> Value {
    return arith::MulIOp::create(b, loc, x, number(x, factor));
  };
  auto join = [&](Value x, Value y) -> Value {
    return arith::OrIOp::create(b, loc, x, y);
  };
  row = toI64(b, loc, row);
  Value tiles = arith::MulIOp::create(b, loc, above(row, 7), pitch);
  Value inRow = shorten(column); // where it is in a row
  Value inColumn = shorten(row);
  // Parts that have no bits in common.
  Value of32 = bits(times(inColumn, 16), 31 * 16);
  Value of128 = bits(above(inColumn, 3), 3 * 4);
  Value of4 = bits(inRow, 3);
  Value others = bits(times(inRow, kRows), -4 * kRows);
  Value offset = join(others, join(join(of32, of128), of4));
  if (isShort)
    offset = arith::ExtUIOp::create(b, loc, i64, offset);
  return arith::AddIOp::create(b, loc, times(tiles, kRows), offset);
}
