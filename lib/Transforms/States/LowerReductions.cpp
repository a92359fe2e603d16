//===- LowerReductions.cpp - lower to reductions of numbers ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/States/LowerReductions.h"
#include "lib/Transforms/AccessPredicate.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace mlafix;

/// Returns the type `element`. If `like` is a row tile, returns instead a row
/// of this type along the dim of `like`.
static Type withElement(Type like, Type element) {
  return isRowTile(like) ? getRowTileType(getTileDim(like), element) : element;
}

/// Broadcasts `reduced`, the result of a reduction, to a row of type `row`.
/// `reduced` is a number, or a row with one element per group.
static Value spread(OpBuilder &b, Location loc, Type row, Value reduced) {
  return isRowTile(reduced.getType())
             ? Value(BroadcastOp::create(b, loc, row, reduced))
             : Value(SplatOp::create(b, loc, row, reduced));
}

/// Builds the constant `number`. If `like` is a row tile, builds instead a row
/// of this constant along the dim of `like`.
static Value buildConstant(OpBuilder &b, Location loc, Type like,
                           TypedAttr number) {
  Value scalar = arith::ConstantOp::create(b, loc, number);
  Type type = withElement(like, number.getType());
  return isRowTile(type) ? Value(SplatOp::create(b, loc, type, scalar))
                         : scalar;
}

/// Replaces -0 by 0 in an f32 or a row of f32. Other values stay unchanged.
static Value dropSignOfZero(OpBuilder &b, Location loc, Value value) {
  if (!getElementTypeOrSelf(value.getType()).isF32())
    return value;
  Value zero = buildConstant(b, loc, value.getType(), b.getF32FloatAttr(0));
  return arith::AddFOp::create(b, loc, value, zero);
}

constexpr unsigned kF32FractionBits = 23;

/// The largest number of nested selects that countSpareBits() looks through.
/// Each level doubles the work, since both operands of a select are examined.
constexpr unsigned kMostSelections = 4;

/// Returns the number of low bits that are 0 in every f32 of a row, except in
/// NaN. In a loaded row, these are the bits that the dtype in memory lacks.
static unsigned countSpareBits(Value row, unsigned selections = 0) {
  if (!getElementTypeOrSelf(row.getType()).isF32() ||
      selections > kMostSelections)
    return 0;
  if (auto splat = row.getDefiningOp<SplatOp>()) {
    APFloat number(0.0f);
    if (!matchPattern(splat.getOperand(), m_ConstantFloat(&number)))
      return 0;
    return number.bitcastToAPInt().countr_zero();
  }
  if (auto select = row.getDefiningOp<arith::SelectOp>())
    return std::min(countSpareBits(select.getTrueValue(), selections + 1),
                    countSpareBits(select.getFalseValue(), selections + 1));
  auto load = row.getDefiningOp<LoadOp>();
  APFloat other(0.0f);
  if (!load || (load.getOther() &&
                !matchPattern(load.getOther(), m_ConstantFloat(&other))))
    return 0;
  auto type = dyn_cast<FloatType>(load.getSource().getType().getElementType());
  if (!type || type.getWidth() > 16)
    return 0;
  unsigned fraction = APFloat::semanticsPrecision(type.getFloatSemantics()) - 1;
  return std::min<unsigned>(kF32FractionBits - fraction,
                            other.bitcastToAPInt().countr_zero());
}

//===----------------------------------------------------------------------===//
// mlafix.arg_reduce
//===----------------------------------------------------------------------===//

/// Builds the float below `greatest`, the maximum of a row. The comparison
/// "greater than this float, or unordered" (UGT) is true for the elements that
/// equal the maximum, and for no others. If the maximum is NaN, the float is
/// +inf, so the comparison is true only for NaN. If the maximum is -inf, the
/// float is NaN, so the comparison is true for all elements.
static Value buildNextBelow(OpBuilder &b, Location loc, Value greatest) {
  auto integer = [&](int32_t number) {
    return buildConstant(b, loc, greatest.getType(),
                         b.getI32IntegerAttr(number));
  };
  auto number = [&](float value) {
    return buildConstant(b, loc, greatest.getType(), b.getF32FloatAttr(value));
  };
  auto compare = [&](arith::CmpFPredicate predicate, Value other) -> Value {
    return arith::CmpFOp::create(b, loc, predicate, greatest, other);
  };
  Type bitsType = withElement(greatest.getType(), b.getI32Type());
  Value bits = arith::BitcastOp::create(b, loc, bitsType, greatest);
  Value one = integer(1);
  Value negative = arith::OrIOp::create(b, loc, bits, integer(INT32_MIN));
  Value below = arith::SelectOp::create(
      b, loc, compare(arith::CmpFPredicate::OGT, number(0)),
      arith::SubIOp::create(b, loc, bits, one),
      arith::AddIOp::create(b, loc, negative, one));
  return arith::SelectOp::create(
      b, loc, compare(arith::CmpFPredicate::UNO, greatest),
      number(std::numeric_limits<float>::infinity()),
      arith::BitcastOp::create(b, loc, greatest.getType(), below));
}

/// Compares `row`, a row or a number, with `extreme`, the result of a reduction
/// of kind `kind`. Builds a row of i1, or a single i1, that is true where the
/// value equals `extreme`. NaN equals NaN here.
static Value buildIsExtreme(OpBuilder &b, Location loc, ReduceKind kind,
                            Value row, Value extreme) {
  auto all = [&](Value number) {
    return isRowTile(row.getType()) ? spread(b, loc, row.getType(), number)
                                    : number;
  };
  if (!getElementTypeOrSelf(row.getType()).isF32())
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, row,
                                 all(extreme));
  if (kind == ReduceKind::max)
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UGT, row,
                                 all(buildNextBelow(b, loc, extreme)));
  Value greatest = arith::NegFOp::create(b, loc, extreme);
  Value above = arith::NegFOp::create(b, loc, buildNextBelow(b, loc, greatest));
  return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ULT, row,
                               all(above));
}

/// Builds a row with the index of each element that equals the extreme, and
/// INT32_MAX elsewhere.
static Value buildIndices(OpBuilder &b, Location loc, ArgReduceOp op,
                          Value extreme) {
  Value row = op.getSource();
  Type type = getRowTileType(getTileDim(row.getType()), b.getI32Type());
  Value isHere = buildIsExtreme(b, loc, op.getKind(), row, extreme);
  Value none = buildConstant(b, loc, type, b.getI32IntegerAttr(INT32_MAX));
  Value all = IotaOp::create(b, loc, type);
  return arith::SelectOp::create(b, loc, isHere, all, none);
}

/// Builds a row in which each element holds the least index of an extreme
/// element of its lane, or INT32_MAX if the lane has none. Only lanes that
/// contain the extreme search their elements.
static Value buildLaneIndices(OpBuilder &b, Location loc, ArgReduceOp op,
                              Value extreme) {
  Value row = op.getSource();
  Value own = ReduceOp::create(b, loc, extreme.getType(), op.getKind(), row,
                               /*in_lane=*/true);
  Value hasIt = buildIsExtreme(b, loc, op.getKind(), own, extreme);
  auto search = scf::IfOp::create(b, loc, TypeRange{b.getI32Type()}, hasIt,
                                  /*withElseRegion=*/true);
  Type indices = getRowTileType(getTileDim(row.getType()), b.getI32Type());
  OpBuilder then = search.getThenBodyBuilder(),
            otherwise = search.getElseBodyBuilder();
  Value found = ReduceOp::create(then, loc, b.getI32Type(), ReduceKind::min,
                                 buildIndices(then, loc, op, extreme),
                                 /*in_lane=*/true);
  scf::YieldOp::create(then, loc, found);
  scf::YieldOp::create(
      otherwise, loc,
      arith::ConstantIntOp::create(otherwise, loc, INT32_MAX, 32).getResult());
  return SplatOp::create(b, loc, indices, search.getResult(0));
}

namespace {
/// Lowers mlafix.arg_reduce to the least index of an extreme element. If the
/// row contains NaN, the extreme is NaN, and the index is that of the first
/// NaN.
struct LowerArgReduce : OpConversionPattern<ArgReduceOp> {
  LowerArgReduce(const TypeConverter &converter, MLIRContext *context,
                 int64_t leastByLane, int64_t mostByLane, int64_t mostSeparate)
      : OpConversionPattern(converter, context), leastByLane(leastByLane),
        mostByLane(mostByLane), mostSeparate(mostSeparate) {}

  LogicalResult
  matchAndRewrite(ArgReduceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value row = op.getSource();
    Type element = getElementTypeOrSelf(row.getType());
    DimAttr dim = getTileDim(row.getType());
    bool isOfGroups = isRowTile(op.getType());
    Type indices = getRowTileType(dim, rewriter.getI32Type());
    Type reduced = withElement(op.getType(), element);
    Value extreme = ReduceOp::create(rewriter, loc, reduced, op.getKind(), row);
    bool isByLane = !isOfGroups && dim.isBound() &&
                    dim.getSize() >= leastByLane &&
                    dim.getSize() <= getMostByLane(row);
    Value index = isByLane ? buildLaneIndices(rewriter, loc, op, extreme)
                           : buildIndices(rewriter, loc, op, extreme);
    Value least =
        ReduceOp::create(rewriter, loc, op.getType(), ReduceKind::min, index);
    if (isOfGroups) { // Make indices relative to the group.
      Value all = IotaOp::create(rewriter, loc, indices);
      Value first =
          ReduceOp::create(rewriter, loc, op.getType(), ReduceKind::min, all);
      least = arith::SubIOp::create(rewriter, loc, least, first);
    }
    if (dim.isBounded()) // The index is 0 for empty rows.
      least = arith::SelectOp::create(
          rewriter, loc,
          arith::CmpIOp::create(
              rewriter, loc, arith::CmpIPredicate::eq, least,
              arith::ConstantIntOp::create(rewriter, loc, INT32_MAX, 32)),
          arith::ConstantIntOp::create(rewriter, loc, 0, 32), least);
    rewriter.replaceOp(op, least);
    return success();
  }

private:
  /// Returns the length of the longest row like `row` for which
  /// buildLaneIndices() is used.
  int64_t getMostByLane(Value row) const {
    auto load = row.getDefiningOp<LoadOp>();
    // getMostLanes() assumes that elements loaded from 16 bits or fewer stay
    // narrow, so that a lane holds twice as many. But the search for the index
    // is in a branch, and elements that a branch uses are kept as f32. So the
    // limit is half as large. Exception: bf16 may stay narrow (`mostSeparate`).
    int64_t most =
        load && countSpareBits(row) > 0 ? mostByLane / 2 : mostByLane;
    bool isBF16 = load && load.getSource().getType().getElementType().isBF16();
    return isBF16 ? std::max(most, mostSeparate) : most;
  }

  int64_t leastByLane, mostByLane, mostSeparate; // row lengths in elements
};
} // namespace

//===----------------------------------------------------------------------===//
// mlafix.top_k
//===----------------------------------------------------------------------===//

namespace {
/// Builds sort keys for the elements of a row. Keys are distinct integers, and
/// the greatest element has the greatest key. The high bits order elements by
/// value. The low bits contain the inverted index, so that the first of equal
/// elements has the greatest key. Keys are i32 if the elements have enough zero
/// low bits for an index, else i64.
class KeyBuilder {
public:
  KeyBuilder(OpBuilder &b, Location loc, Value row, bool isOnGPU)
      : b(b), loc(loc), row(row), dim(getTileDim(row.getType())),
        isFloat(getElementTypeOrSelf(row.getType()).isF32()),
        sumsToOneNaN(isOnGPU && row.getDefiningOp<LoadOp>()),
        indexBits(countSpareBits(row)) {
    // NaN sorts above infinity, so at least one fraction bit must remain.
    bool isNarrow = dim.isBound() && indexBits < kF32FractionBits &&
                    dim.getSize() <= int64_t(1) << indexBits;
    if (!isNarrow)
      indexBits = 32;
  }

  bool isNarrow() const { return indexBits < 32; }
  IntegerType getType() const { return b.getIntegerType(isNarrow() ? 32 : 64); }

  Value keys(bool inGroups);
  /// Extracts the element's value from a key, or from each key of a row.
  Value value(Value key);
  Value index(Value key);
  /// Builds the greatest of `keys`, or the greatest of each group. If `found`
  /// is not null, only keys below `found` count. There must be such a key.
  Value greatest(Value keys, Type result, Value found);

private:
  /// Builds the integer `number` with `width` bits, in the shape of `like`.
  Value constant(Value like, int64_t number, unsigned width);
  static Type typed(Value like, Type element) {
    return withElement(like.getType(), element);
  }
  /// Return the masks of the value bits and of the index bits of a key.
  int32_t getValueMask() const { return isNarrow() ? -(1 << indexBits) : -1; }
  int32_t getIndexMask() const { return isNarrow() ? ~getValueMask() : -1; }
  /// Converts the bits of a float to an integer, or back, so that integers have
  /// the order of the floats. Only negative floats change: their order is the
  /// reverse of the order of their bits.
  Value turnNegative(Value bits);

  OpBuilder &b;
  Location loc;
  Value row;
  DimAttr dim;
  bool isFloat;
  /// True if adding 0 turns every NaN of the row into 0x7fffffff. A GPU does so
  /// (PTX ISA, `add`), but the row must be loaded: an addition of 0 to a
  /// computed value may be folded away.
  bool sumsToOneNaN;
  unsigned indexBits;
};
} // namespace

Value KeyBuilder::constant(Value like, int64_t number, unsigned width) {
  return buildConstant(b, loc, like.getType(),
                       b.getIntegerAttr(b.getIntegerType(width), number));
}

Value KeyBuilder::turnNegative(Value bits) {
  Value sign = arith::ShRSIOp::create(b, loc, bits, constant(bits, 31, 32));
  Value others = arith::AndIOp::create(
      b, loc, sign, constant(bits, INT32_MAX & getValueMask(), 32));
  return arith::XOrIOp::create(b, loc, bits, others);
}

Value KeyBuilder::keys(bool inGroups) {
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  Value order = row;
  if (isFloat)
    order = turnNegative(arith::BitcastOp::create(b, loc, typed(row, i32),
                                                  dropSignOfZero(b, loc, row)));
  if (isFloat && sumsToOneNaN) {
    order =
        arith::AndIOp::create(b, loc, order, constant(row, getValueMask(), 32));
  } else if (isFloat) {
    Value isNaN =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, row, row);
    order = arith::SelectOp::create(
        b, loc, isNaN, constant(row, INT32_MAX & getValueMask(), 32), order);
  }
  Value index = IotaOp::create(b, loc, typed(row, i32));
  if (inGroups) { // Make indices relative to the group.
    Value first = ReduceOp::create(b, loc, getRowTileType(dim.getGroups(), i32),
                                   ReduceKind::min, index);
    first = BroadcastOp::create(b, loc, index.getType(), first);
    index = arith::SubIOp::create(b, loc, index, first);
  }
  index =
      arith::XOrIOp::create(b, loc, index, constant(index, getIndexMask(), 32));
  if (isNarrow())
    return arith::OrIOp::create(b, loc, order, index);
  Value high = arith::ShLIOp::create(
      b, loc, arith::ExtSIOp::create(b, loc, typed(row, i64), order),
      constant(row, 32, 64));
  Value low = arith::ExtUIOp::create(b, loc, typed(row, i64), index);
  return arith::OrIOp::create(b, loc, high, low);
}

Value KeyBuilder::value(Value key) {
  Value order;
  if (isNarrow()) {
    order =
        arith::AndIOp::create(b, loc, key, constant(key, getValueMask(), 32));
  } else {
    order = arith::ShRSIOp::create(b, loc, key, constant(key, 32, 64));
    order = arith::TruncIOp::create(b, loc, typed(key, b.getI32Type()), order);
  }
  return isFloat ? Value(arith::BitcastOp::create(
                       b, loc, typed(key, b.getF32Type()), turnNegative(order)))
                 : order;
}

Value KeyBuilder::index(Value key) {
  Value mask = constant(key, getIndexMask(), 32);
  Value low =
      isNarrow()
          ? Value(arith::AndIOp::create(b, loc, key, mask))
          : arith::TruncIOp::create(b, loc, typed(key, b.getI32Type()), key);
  return arith::XOrIOp::create(b, loc, low, mask);
}

Value KeyBuilder::greatest(Value keys, Type result, Value found) {
  Type type = withElement(result, getType());
  if (!found)
    return ReduceOp::create(b, loc, type, ReduceKind::max, keys);
  // The addition wraps around. It maps `found` to the least integer, keys above
  // `found` to the integers that follow, and keys below `found` to the greatest
  // integers, in order.
  unsigned width = getType().getWidth();
  Value step = arith::SubIOp::create(
      b, loc, constant(found, llvm::minIntN(width), width), found);
  Value turned =
      arith::AddIOp::create(b, loc, keys, spread(b, loc, keys.getType(), step));
  Value most = ReduceOp::create(b, loc, type, ReduceKind::max, turned);
  return arith::SubIOp::create(b, loc, most, step);
}

/// Returns the least value of the type `element`: -inf, or the least integer.
static TypedAttr getLeast(OpBuilder &b, Type element) {
  if (element.isF32())
    return b.getF32FloatAttr(-std::numeric_limits<float>::infinity());
  return b.getIntegerAttr(
      element, APInt::getSignedMinValue(element.getIntOrFloatBitWidth()));
}

namespace {
/// Finds the greatest elements of a row, or of each group, one at a time: the
/// greatest remaining value, and its least index. A found element is replaced
/// by the least value of its type. So if a result is this least value, its
/// index may be that of an element that was found before. buildLeastIndices()
/// corrects such indices.
class GreatestFinder {
public:
  /// `result` is the type of one result: a scalar or a row with one element per
  /// group.
  GreatestFinder(OpBuilder &b, Location loc, Value row, Type result)
      : b(b), loc(loc), rest(row), result(result),
        element(getElementTypeOrSelf(row.getType())) {
    all = IotaOp::create(b, loc, withElement(row.getType(), b.getI32Type()));
    none = buildConstant(b, loc, row.getType(), b.getI32IntegerAttr(INT32_MAX));
  }

  /// Returns the next element and its index in the row.
  std::pair<Value, Value> next();

private:
  OpBuilder &b;
  Location loc;
  Value rest; // the row, with found elements replaced by the least value
  Type result;
  Type element;
  Value all, none;
  Value found; // index of the last found element; null before the first
};
} // namespace

std::pair<Value, Value> GreatestFinder::next() {
  if (found) {
    Value isOther = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, all,
                                          spread(b, loc, all.getType(), found));
    rest = arith::SelectOp::create(
        b, loc, isOther, rest,
        buildConstant(b, loc, rest.getType(), getLeast(b, element)));
  }
  Value greatest = ReduceOp::create(b, loc, withElement(result, element),
                                    ReduceKind::max, rest);
  Value isHere = buildIsExtreme(b, loc, ReduceKind::max, rest, greatest);
  Value indices = arith::SelectOp::create(b, loc, isHere, all, none);
  found = ReduceOp::create(b, loc, withElement(result, b.getI32Type()),
                           ReduceKind::min, indices);
  return {greatest, found};
}

/// The largest number of elements that findByIndex() finds. The limit is 32,
/// since buildLeastIndices() keeps a set of indices in the bits of an i32.
static constexpr size_t kMostByIndex = 32;

/// Builds an i1 that is true if a number is the least value of its type. For a
/// row with one element per group, builds one i1 per group.
static Value buildIsLeast(OpBuilder &b, Location loc, Value number) {
  Type element = getElementTypeOrSelf(number.getType());
  Value least = buildConstant(b, loc, number.getType(), getLeast(b, element));
  if (element.isF32())
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, number,
                                 least);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number, least);
}

/// Builds the indices of `values`, the greatest elements in descending order.
/// `indices` are right except for elements that have the least value of their
/// type. The index of such an element is the first one that no earlier element
/// has.
static SmallVector<Value> buildLeastIndices(OpBuilder &b, Location loc,
                                            ValueRange values,
                                            ValueRange indices) {
  auto number = [&](int32_t value) {
    return buildConstant(b, loc, indices.front().getType(),
                         b.getI32IntegerAttr(value));
  };
  Value zero = number(0), one = number(1), most = number(31), set = zero;
  SmallVector<Value> result;
  for (auto [value, index] : llvm::zip_equal(values, indices)) {
    // The lowest index that is not in the set equals the number of trailing
    // ones of the set. There is such an index, since the set has 32 bits and
    // fewer than 32 elements come before this one.
    Value others = arith::XOrIOp::create(b, loc, set, number(-1));
    Value lowest = arith::AndIOp::create(
        b, loc, others, arith::SubIOp::create(b, loc, zero, others));
    Value firstLeft = math::CtPopOp::create(
        b, loc, arith::SubIOp::create(b, loc, lowest, one));
    result.push_back(arith::SelectOp::create(
        b, loc, buildIsLeast(b, loc, value), firstLeft, index));
    Value bit = arith::ShLIOp::create(
        b, loc, one, arith::AndIOp::create(b, loc, result.back(), most));
    Value isIn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ule,
                                       result.back(), most);
    set = arith::OrIOp::create(
        b, loc, set, arith::SelectOp::create(b, loc, isIn, bit, zero));
  }
  return result;
}

/// Finds each element by one reduction of the remaining keys. Used for long
/// rows, for i32 keys, and on CPUs.
static void findByKeys(OpBuilder &b, TopKOp op, KeyBuilder builder,
                       SmallVector<Value> &values,
                       SmallVector<Value> &indices) {
  Type result = op.getValues().front().getType();
  Value keys = builder.keys(/*inGroups=*/isRowTile(result)), best;
  for (size_t i = 0, count = op.getValues().size(); i < count; ++i) {
    best = builder.greatest(keys, result, best);
    values.push_back(builder.value(best));
    indices.push_back(builder.index(best));
  }
}

/// Finds each element by two reductions of numbers that are half as wide as
/// keys, without building keys. Used for short rows.
static void findByIndex(OpBuilder &b, TopKOp op, SmallVector<Value> &values,
                        SmallVector<Value> &indices) {
  Location loc = op.getLoc();
  Type result = op.getValues().front().getType(), i32 = b.getI32Type();
  bool isOfGroups = isRowTile(result);
  Value first; // first index of each group; null if the whole row is reduced
  if (isOfGroups) {
    DimAttr dim = getTileDim(op.getSource().getType());
    Value all = IotaOp::create(b, loc, getRowTileType(dim, i32));
    first = ReduceOp::create(b, loc, withElement(result, i32), ReduceKind::min,
                             all);
  }
  GreatestFinder finder(b, loc, op.getSource(), result);
  for (size_t i = 0, count = op.getValues().size(); i < count; ++i) {
    auto [value, index] = finder.next();
    values.push_back(value);
    indices.push_back(
        first ? arith::SubIOp::create(b, loc, index, first).getResult()
              : index);
  }
  if (isOfGroups) {
    indices = buildLeastIndices(b, loc, values, indices);
  } else if (values.size() > 1) {
    // If the last element is not the least value, no other element is, so all
    // indices are right.
    auto choice = scf::IfOp::create(b, loc, ValueRange(indices).getTypes(),
                                    buildIsLeast(b, loc, values.back()),
                                    /*withElseRegion=*/true);
    OpBuilder then = choice.getThenBodyBuilder(),
              otherwise = choice.getElseBodyBuilder();
    scf::YieldOp::create(then, loc,
                         buildLeastIndices(then, loc, values, indices));
    scf::YieldOp::create(otherwise, loc, indices);
    indices.assign(choice.getResults().begin(), choice.getResults().end());
  }
  for (Value &value : values)
    value = dropSignOfZero(b, loc, value);
}

/// A row with a bounded dim may have fewer elements than `op` has results.
/// Replaces the values past the end of the row by the least value of their
/// type, and their indices by 0, as in a reduction of no elements.
static void endWithRow(OpBuilder &b, TopKOp op, SmallVector<Value> &values,
                       SmallVector<Value> &indices) {
  Location loc = op.getLoc();
  Value size = buildRowSize(b, loc, op->getParentOfType<KernelOp>(),
                            getTileDim(op.getSource().getType()));
  Value first = arith::ConstantIntOp::create(b, loc, 0, 32);
  for (auto [i, value, index] : llvm::enumerate(values, indices)) {
    Value exists = arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::ugt, size,
        arith::ConstantIndexOp::create(b, loc, static_cast<int64_t>(i)));
    Value none =
        arith::ConstantOp::create(b, loc, getLeast(b, value.getType()));
    value = arith::SelectOp::create(b, loc, exists, value, none);
    index = arith::SelectOp::create(b, loc, exists, index, first);
  }
}

namespace {
struct LowerTopK : OpConversionPattern<TopKOp> {
  LowerTopK(const TypeConverter &converter, MLIRContext *context,
            int64_t mostByIndex, bool isOnGPU)
      : OpConversionPattern(converter, context), mostByIndex(mostByIndex),
        isOnGPU(isOnGPU) {}

  LogicalResult
  matchAndRewrite(TopKOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> values, indices;
    DimAttr dim = getTileDim(op.getSource().getType());
    KeyBuilder builder(rewriter, op.getLoc(), op.getSource(), isOnGPU);
    if (!builder.isNarrow() && dim.isBound() && dim.getSize() <= mostByIndex &&
        op.getValues().size() <= kMostByIndex)
      findByIndex(rewriter, op, values, indices);
    else
      findByKeys(rewriter, op, builder, values, indices);
    if (dim.isBounded())
      endWithRow(rewriter, op, values, indices);
    llvm::append_range(values, indices);
    rewriter.replaceOp(op, values);
    return success();
  }

  int64_t mostByIndex; // largest row length in elements
  bool isOnGPU;
};

/// Lowers a reduction of booleans to a reduction of the integers 0 and 1.
struct LowerReduceOfBools : OpConversionPattern<ReduceOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(ReduceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type i32 = rewriter.getI32Type();
    Type row = withElement(op.getSource().getType(), i32);
    Type result = withElement(op.getType(), i32);
    Value numbers =
        arith::ExtUIOp::create(rewriter, loc, row, adaptor.getSource());
    Value reduced =
        ReduceOp::create(rewriter, loc, result, op.getKind(), numbers);
    Value zero = arith::ConstantIntOp::create(rewriter, loc, 0, 32);
    if (isRowTile(result))
      zero = SplatOp::create(rewriter, loc, result, zero);
    // The result is true if the reduced number is positive. This also holds for
    // an empty row: its maximum is the least i32, its minimum the greatest.
    rewriter.replaceOpWithNewOp<arith::CmpIOp>(op, arith::CmpIPredicate::sgt,
                                               reduced, zero);
    return success();
  }
};
} // namespace

bool mlafix::reducesNumbers(ReduceOp op) {
  return !getElementTypeOrSelf(op.getSource().getType()).isInteger(1);
}

void mlafix::populateLowerReductionPatterns(
    RewritePatternSet &patterns, const TypeConverter &converter,
    int64_t mostByIndex, int64_t leastByLane, int64_t mostByLane,
    int64_t mostSeparate, bool isOnGPU) {
  MLIRContext *context = patterns.getContext();
  patterns.add<LowerReduceOfBools>(converter, context);
  patterns.add<LowerArgReduce>(converter, context, leastByLane, mostByLane,
                               mostSeparate);
  patterns.add<LowerTopK>(converter, context, mostByIndex, isOnGPU);
}
