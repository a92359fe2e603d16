//===- Fp4.cpp - f4E2M1FN from and to f32 --------------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/Fp4.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlafix;

static constexpr float kLargest = 6.0f;

//===----------------------------------------------------------------------===//
// On every target
//===----------------------------------------------------------------------===//

/// Elements `first`, `first + 2` and so on of a vector.
static Value everySecond(ShapedBuilder s, Value x, int64_t first) {
  int64_t count = cast<VectorType>(x.getType()).getNumElements();
  SmallVector<int64_t> places;
  for (int64_t i = first; i < count; i += 2)
    places.push_back(i);
  return vector::ShuffleOp::create(s.b, s.loc, x, x, places);
}

/// Two codes are made in one word. Twice a magnitude below 2, or what is left
/// of it in units of its fraction, is added to a power of two, which rounds it;
/// 6 more units make what the exponent of that power adds to the code a
/// multiple of 16.
Value mlafix::narrowFp4(ShapedBuilder s, Value x) {
  constexpr int64_t kExponent = 0x7f800000, kUnits = 22 << 23, kMore = 6;
  auto type = cast<VectorType>(x.getType());
  Value magnitude = s.op<arith::AndIOp>(s.bits(x), s.i(0x7fffffff));
  Value least =
      s.op<arith::MaxUIOp>(magnitude, s.bits(s.f(1.0f))); // as floats compare
  Value power = s.op<arith::AddIOp>(s.op<arith::AndIOp>(least, s.i(kExponent)),
                                    s.i(kUnits + kMore));
  Value sum =
      s.bits(s.op<arith::AddFOp>(s.floatOf(magnitude), s.floatOf(power)));
  Value code = s.op<arith::AndIOp>(
      s.op<arith::AddIOp>(sum, s.op<arith::ShRUIOp>(sum, s.i(22))), s.i(7));
  Value sign =
      s.op<arith::AndIOp>(s.op<arith::ShRUIOp>(s.bits(x), s.i(28)), s.i(8));
  code = s.op<arith::OrIOp>(sign, code);
  Value low = everySecond(s, code, 0), high = everySecond(s, code, 1);
  ShapedBuilder pairs(s.b, s.loc, low.getType());
  Value both =
      pairs.op<arith::OrIOp>(low, pairs.op<arith::ShLIOp>(high, pairs.i(4)));
  Value bytes =
      arith::TruncIOp::create(s.b, s.loc, pairs.typeOf(s.b.getI8Type()), both);
  return vector::BitCastOp::create(
      s.b, s.loc, VectorType::get(type.getShape(), s.b.getIntegerType(4)),
      bytes);
}

Value mlafix::widenFp4(ShapedBuilder s, Value halves) {
  using I = arith::CmpIPredicate;
  auto type = cast<VectorType>(halves.getType());
  int64_t count = type.getNumElements();
  Type i8 = s.b.getI8Type();
  Value bytes = vector::BitCastOp::create(
      s.b, s.loc, VectorType::get({count / 2}, i8), halves);
  ShapedBuilder pairs(s.b, s.loc, bytes.getType());
  Value low = arith::ExtUIOp::create(s.b, s.loc, pairs.i32(), bytes);
  Value high = pairs.op<arith::ShRUIOp>(low, pairs.i(4));
  SmallVector<int64_t> places;
  for (int64_t i = 0; i < count / 2; ++i)
    places.append({i, count / 2 + i});
  Value code = vector::ShuffleOp::create(s.b, s.loc, low, high, places);
  Value sign = s.op<arith::ShLIOp>(s.op<arith::AndIOp>(code, s.i(8)), s.i(28));
  Value magnitude = s.op<arith::AndIOp>(code, s.i(7));
  // Its exponent and the first bit of its fraction lie as those of f32 do.
  Value normal = s.op<arith::AddIOp>(s.op<arith::ShLIOp>(magnitude, s.i(22)),
                                     s.i(int64_t(126) << 23));
  Value half = s.bits(s.f(0.5f));
  Value small = s.select(s.cmp(I::eq, magnitude, s.i(1)), half, s.i(0));
  Value bits = s.select(s.cmp(I::ugt, magnitude, s.i(1)), normal, small);
  return s.floatOf(s.op<arith::OrIOp>(sign, bits));
}

//===----------------------------------------------------------------------===//
// On GPUs
//===----------------------------------------------------------------------===//

/// What `x` is the larger of -6 and the smaller of 6 and; null if it is
/// something else.
static Value getUnbounded(Value x) {
  auto isBound = [](Value value, float bound) {
    APFloat number(0.0f);
    return matchPattern(value, m_ConstantFloat(&number)) &&
           number.compare(APFloat(bound)) == APFloat::cmpEqual;
  };
  auto upper = x.getDefiningOp<arith::MaxNumFOp>();
  if (!upper || !isBound(upper.getRhs(), -kLargest))
    return Value();
  auto lower = upper.getLhs().getDefiningOp<arith::MinNumFOp>();
  return lower && isBound(lower.getRhs(), kLargest) ? lower.getLhs() : Value();
}

/// Whether NaN in `x` has no sign: that of a product is 0x7fffffff (PTX ISA,
/// `mul`). A product with a constant may become a negation, or nothing.
static bool hasPositiveNaN(Value x) {
  auto product = x.getDefiningOp<arith::MulFOp>();
  return product && !matchPattern(product.getLhs(), m_Constant()) &&
         !matchPattern(product.getRhs(), m_Constant());
}

/// Elements of a word, of up to eight codes.
static constexpr int64_t kWordElements = 8;

/// What is added to round to an integer: a number whose unit is 1. The second
/// element of a word has another one than the rest: the bits of the two, c and
/// d, are such that c + 16 * d is 0 modulo 2^32, and so is 256 * c. So nothing
/// is left of them in a word.
static constexpr float kUnits = 8388608.0f, kSecondUnits = 13631488.0f;

/// kUnits or kSecondUnits, plus `more`, for each element of a pack.
static Value buildUnits(ShapedBuilder s, float more) {
  auto type = cast<VectorType>(s.typeOf(s.b.getF32Type()));
  int64_t count = type.getNumElements(),
          each = std::min<int64_t>(count, kWordElements);
  SmallVector<float> units;
  for (int64_t i = 0; i < count; ++i)
    units.push_back((i % each == 1 ? kSecondUnits : kUnits) + more);
  return arith::ConstantOp::create(
      s.b, s.loc, DenseElementsAttr::get(type, ArrayRef<float>(units)));
}

/// The code of each of `magnitudes`, at most 6, plus its units as bits. The
/// numbers lie on three lines:
///
///   2 x where they are 0.5 apart, x + 2 where 1, x / 2 + 4 where 2
///
/// Each line is the lowest where it counts. It is rounded once, as it is added
/// to the units; rounding keeps the order, so the lowest of the rounded is the
/// lowest, rounded, and ties go to codes that are even. `asBits`: compared as
/// integers, as which positive floats have the same order.
static Value buildCodes(ShapedBuilder s, Value magnitudes, bool asBits) {
  Value halves = s.fma(magnitudes, s.f(2.0f), buildUnits(s, 0.0f));
  Value ones = s.op<arith::AddFOp>(magnitudes, buildUnits(s, 2.0f));
  Value twos = s.fma(magnitudes, s.f(0.5f), buildUnits(s, 4.0f));
  if (asBits) {
    Value lowest = s.op<arith::MinSIOp>(s.bits(halves), s.bits(ones));
    return s.op<arith::MinSIOp>(lowest, s.bits(twos));
  }
  Value lowest = s.op<arith::MinNumFOp>(halves, ones);
  return s.bits(s.op<arith::MinNumFOp>(lowest, twos));
}

namespace {
/// Makes words of up to eight codes, of the sums that buildCodes makes and the
/// bits of floats that have the signs.
class WordBuilder {
public:
  WordBuilder(OpBuilder &b, Location loc, Value sums, Value signs)
      : s(b, loc, b.getI32Type()), sums(sums), signs(signs) {}

  /// Elements `first` to `first + count`, in the low bits.
  Value build(int64_t first, int64_t count) {
    Value even = gatherSigns(first, count / 2);
    Value odd = gatherSigns(first + 1, count / 2);
    // The codes, in this order, take an instruction with each mask.
    Value word = addBits(addSums(first, count), even, 0x08080808);
    return addBits(word, odd, 0x80808080);
  }

private:
  Value get(Value vector, int64_t i) {
    return vector::ExtractOp::create(s.b, s.loc, vector, i);
  }
  Value addBits(Value word, Value x, uint32_t mask) {
    return s.op<arith::OrIOp>(word, s.op<arith::AndIOp>(x, s.i(mask)));
  }
  /// Bytes of two words, by PTX's `prmt`.
  Value permute(Value low, Value high, uint32_t selector) {
    return buildPermute(s.b, s.loc, low, high, s.i(selector));
  }
  Value addSums(int64_t first, int64_t count);
  Value gatherSigns(int64_t first, int64_t count);

  ShapedBuilder s;
  Value sums, signs;
};
} // namespace

/// The sums, each times 16 to the power of its place.
Value WordBuilder::addSums(int64_t first, int64_t count) {
  if (count == 1)
    return get(sums, first);
  Value low = addSums(first, count / 2);
  Value high = addSums(first + count / 2, count / 2);
  return s.op<arith::AddIOp>(s.op<arith::ShLIOp>(high, s.i(2 * count)), low);
}

/// Bytes that are 0 or 0xff, by the signs of `count` elements: of `first`,
/// `first + 2` and so on.
Value WordBuilder::gatherSigns(int64_t first, int64_t count) {
  constexpr uint32_t kSignOfLow = 0xb, kSignOfHigh = 0xf;
  if (count == 4)
    return permute(gatherSigns(first, 2), gatherSigns(first + 4, 2), 0x5410);
  Value low = get(signs, first);
  Value high = count == 2 ? get(signs, first + 2) : low;
  return permute(low, high, kSignOfLow | kSignOfHigh << 4);
}

Value mlafix::narrowFp4OnGPU(ShapedBuilder s, Value x, bool asBits) {
  Value unbounded = getUnbounded(x);
  Value magnitudes, signs = x;
  if (unbounded && hasPositiveNaN(unbounded))
    signs = unbounded;
  else if (unbounded) // NaN is 6
    signs = s.op<arith::MinNumFOp>(unbounded, s.f(kLargest));
  magnitudes = math::AbsFOp::create(s.b, s.loc, signs);
  if (unbounded)
    magnitudes = s.op<arith::MinNumFOp>(magnitudes, s.f(kLargest));
  WordBuilder builder(s.b, s.loc, buildCodes(s, magnitudes, asBits),
                      s.bits(signs));
  int64_t count = cast<VectorType>(x.getType()).getNumElements();
  int64_t each = std::min<int64_t>(count, kWordElements);
  assert(count % each == 0 && "expected whole words");
  Type type = s.b.getIntegerType(4 * each);
  SmallVector<Value> words;
  for (int64_t i = 0; i < count; i += each) {
    Value word = builder.build(i, each);
    words.push_back(each == kWordElements
                        ? word
                        : arith::TruncIOp::create(s.b, s.loc, type, word));
  }
  Value all = vector::FromElementsOp::create(
      s.b, s.loc, VectorType::get({count / each}, type), words);
  return vector::BitCastOp::create(
      s.b, s.loc, VectorType::get({count}, s.b.getIntegerType(4)), all);
}
