//===- ConvertFp8.cpp - converts fp8 and fp4 from and to f32 --------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/Passes.h"
#include "lib/Transforms/ElementaryMath.h"
#include "lib/Transforms/Target.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-convert-fp8"

namespace mlafix {
#define GEN_PASS_DEF_CONVERTFP8PASS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

//===----------------------------------------------------------------------===//
// f4E2M1FN
//===----------------------------------------------------------------------===//

static constexpr float kLargest = 6.0f;

//===----------------------------------------------------------------------===//
// On every target
//===----------------------------------------------------------------------===//

/// Returns elements `first`, `first + 2`, … of a vector.
static Value everySecond(ShapedBuilder s, Value x, int64_t first) {
  int64_t count = cast<VectorType>(x.getType()).getNumElements();
  SmallVector<int64_t> places;
  for (int64_t i = first; i < count; i += 2)
    places.push_back(i);
  return vector::ShuffleOp::create(s.b, s.loc, x, x, places);
}

/// Narrows `x` to the nearest fp4 codes, a vector of i4. `x` is a vector of an
/// even number of f32, already clamped to [-6, 6].
///
/// Let e be the exponent of a magnitude, at least 0. Adding 2^(e + 22) rounds
/// the magnitude to units of 2^(e - 1), which are the units of its fp4
/// fraction. The low bits of the sum count the units. The code is this count
/// plus 2 * e. The sum shifted right by 22 is 2 * e + 298. With kMore = 6
/// further units, the constant becomes 304, a multiple of 8, which the mask 7
/// removes.
static Value narrowFp4(ShapedBuilder s, Value x) {
  constexpr int64_t kExponent = 0x7f800000, kUnits = 22 << 23, kMore = 6;
  auto type = cast<VectorType>(x.getType());
  Value magnitude = s.op<arith::AndIOp>(s.bits(x), s.i(0x7fffffff));
  Value least =
      // The bits of nonnegative floats have the same order as the floats.
      s.op<arith::MaxUIOp>(magnitude, s.bits(s.f(1.0f)));
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

/// Returns the f32 values of the fp4 codes `halves`, a vector of i4.
static Value widenFp4(ShapedBuilder s, Value halves) {
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
  // The exponent is directly above the fraction, as in an f32, so one shift
  // moves both. 126 is the difference of the exponent biases.
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

/// True if a NaN in `x` has no sign bit because `x` is a product: the NaN of a
/// multiplication is 0x7fffffff (PTX ISA, `mul`). False for a product with a
/// constant, because it may be folded to its other operand or to a negation.
static bool hasPositiveNaN(Value x) {
  auto product = x.getDefiningOp<arith::MulFOp>();
  return product && !matchPattern(product.getLhs(), m_Constant()) &&
         !matchPattern(product.getRhs(), m_Constant());
}

/// The number of fp4 codes in a 32-bit word.
static constexpr int64_t kWordElements = 8;

/// Floats whose last fraction bit has the value 1: adding such a float to x
/// rounds x to an integer. The second element of each word uses kSecondUnits,
/// the others use kUnits. A word is the sum of 16^i times the bits of element
/// i. The bits c of kUnits and d of kSecondUnits vanish from this sum, because
/// modulo 2^32:
///
///   - c + 16 * d = 0
///   - 256 * c = 0
static constexpr float kUnits = 8388608.0f, kSecondUnits = 13631488.0f;

/// Returns `more` plus kUnits or kSecondUnits for each element of a pack.
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

/// Returns the code of each magnitude (at most 6), plus the bits of kUnits or
/// kSecondUnits. The code as a function of the magnitude x is the minimum of
/// three linear functions:
///
///   - 2 x, where the values of codes are 0.5 apart
///   - x + 2, where they are 1 apart
///   - x / 2 + 4, where they are 2 apart
///
/// Each function is rounded once, when it is added to the units. Rounding is
/// monotonic, so the minimum of the rounded functions is the rounded minimum.
/// Ties go to even codes. With `asBits`, the minimum compares bits as integers,
/// which have the same order as positive floats.
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
/// Packs up to eight codes into a word. `sums` are the results of buildCodes();
/// `signs` are the bits of floats with the signs of the codes.
class WordBuilder {
public:
  WordBuilder(OpBuilder &b, Location loc, Value sums, Value signs)
      : s(b, loc, b.getI32Type()), sums(sums), signs(signs) {}

  /// Returns the word with elements [first, first + count) in its low bits.
  Value build(int64_t first, int64_t count) {
    Value even = gatherSigns(first, count / 2);
    Value odd = gatherSigns(first + 1, count / 2);
    // Combine the sums to a word first, then add the signs in two steps. Each
    // step is one instruction (LOP3): `word | (signs & mask)`.
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
  /// Picks bytes from two words with PTX's `prmt`.
  Value permute(Value low, Value high, uint32_t selector) {
    return buildPermute(s.b, s.loc, low, high, s.i(selector));
  }
  Value addSums(int64_t first, int64_t count);
  Value gatherSigns(int64_t first, int64_t count);

  ShapedBuilder s;
  Value sums, signs;
};
} // namespace

/// Returns the sum of sums[first + i] * 16^i for all i from 0 to `count` - 1.
Value WordBuilder::addSums(int64_t first, int64_t count) {
  if (count == 1)
    return get(sums, first);
  Value low = addSums(first, count / 2);
  Value high = addSums(first + count / 2, count / 2);
  return s.op<arith::AddIOp>(s.op<arith::ShLIOp>(high, s.i(2 * count)), low);
}

/// Returns a byte, 0 or 0xff, for the sign of each of the `count` elements
/// `first`, `first + 2`, ….
Value WordBuilder::gatherSigns(int64_t first, int64_t count) {
  constexpr uint32_t kSignOfLow = 0xb, kSignOfHigh = 0xf;
  if (count == 4)
    return permute(gatherSigns(first, 2), gatherSigns(first + 4, 2), 0x5410);
  Value low = get(signs, first);
  Value high = count == 2 ? get(signs, first + 2) : low;
  return permute(low, high, kSignOfLow | kSignOfHigh << 4);
}

/// Does the same as narrowFp4(), with the fewest GPU instructions. The number
/// of elements is 2, 4 or a multiple of 8. With `asBits`, compares positive
/// floats as integers.
static Value narrowFp4OnGPU(ShapedBuilder s, Value x, bool asBits) {
  Value unbounded =
      getUnclamped<arith::MinNumFOp, arith::MaxNumFOp>(x, -kLargest, kLargest);
  Value magnitudes, signs = x;
  if (unbounded && hasPositiveNaN(unbounded))
    signs = unbounded;
  else if (unbounded) // NaN becomes 6
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

//===----------------------------------------------------------------------===//
// fp8
//===----------------------------------------------------------------------===//

/// True if the type represents only powers of two.
static bool isPower(Type type) {
  return isa<Float8E8M0FNUType>(getElementTypeOrSelf(type));
}

namespace {
/// The format of an fp8 type. Codes without the sign bit are 0 to 0x7f.
struct Format {
  Type type;
  int64_t fraction; ///< number of fraction bits
  int64_t bias;     ///< exponent bias
  int64_t largest; ///< code of the largest finite number; inf and NaN follow it

  static Format of(Type fp8) {
    Type type = getElementTypeOrSelf(fp8);
    return isa<Float8E4M3FNType>(type) ? Format{type, 3, 7, 0x7e}
                                       : Format{type, 2, 15, 0x7b};
  }
  /// Returns how many fraction bits f32 has more than this format.
  int64_t shift() const { return 23 - fraction; }
  /// Returns the difference of the exponent biases, shifted to the exponent
  /// bits of an f32.
  int64_t exponents() const { return (127 - bias) << 23; }
  /// Returns the f32 bits of the least normal number.
  int64_t minNormal() const { return (127 + 1 - bias) << 23; }
  /// Returns the f32 bits of the power of two whose last fraction bit in f32
  /// has the same value as the last bit of this format's subnormals (the unit).
  int64_t magic() const { return (127 + 1 - bias - fraction + 23) << 23; }
};
} // namespace

static constexpr int64_t kMagnitude = 0x7f;
static constexpr int64_t kInf = 0x7f800000; // infinity, as f32 bits
static constexpr int64_t kNaN = 0x7f;       // the NaN that is stored

//===----------------------------------------------------------------------===//
// By integer arithmetic
//===----------------------------------------------------------------------===//

/// Returns the nearest fp8 code (i8) of x, saturated. NaN becomes the code that
/// NVIDIA's instruction yields.
static Value narrowByIntegers(ShapedBuilder s, Format format, Value x) {
  using I = arith::CmpIPredicate;
  Value bits = s.bits(x);
  Value sign =
      s.op<arith::AndIOp>(s.op<arith::ShRUIOp>(bits, s.i(24)), s.i(0x80));
  Value magnitude = s.op<arith::AndIOp>(bits, s.i(0x7fffffff));
  Value odd = s.op<arith::AndIOp>(
      s.op<arith::ShRUIOp>(magnitude, s.i(format.shift())), s.i(1));
  int64_t almostHalf = (int64_t(1) << (format.shift() - 1)) - 1;
  Value rounded =
      s.op<arith::AddIOp>(magnitude, s.op<arith::AddIOp>(odd, s.i(almostHalf)));
  Value normal = s.op<arith::ShRUIOp>(
      s.op<arith::SubIOp>(rounded, s.i(format.exponents())),
      s.i(format.shift()));
  // Round magnitudes below the least normal number to the unit of subnormals,
  // by adding the power of two that has this unit.
  Value magic = s.i(format.magic());
  Value subnormal = s.op<arith::SubIOp>(
      s.bits(s.op<arith::AddFOp>(s.floatOf(magnitude), s.floatOf(magic))),
      magic);
  Value code = s.select(s.cmp(I::ult, magnitude, s.i(format.minNormal())),
                        subnormal, normal);
  Value largest = s.i(format.largest);
  code = s.select(s.cmp(I::ugt, code, largest), largest, code);
  code = s.op<arith::OrIOp>(sign, code);
  code = s.select(s.cmp(I::ugt, magnitude, s.i(kInf)), s.i(kNaN), code);
  return arith::TruncIOp::create(s.b, s.loc, s.typeOf(s.b.getI8Type()), code);
}

/// Returns the f32 value of the fp8 code `byte` (i8).
static Value widenByIntegers(ShapedBuilder s, Format format, Value byte) {
  using I = arith::CmpIPredicate;
  Value code = arith::ExtUIOp::create(s.b, s.loc, s.i32(), byte);
  Value sign =
      s.op<arith::ShLIOp>(s.op<arith::AndIOp>(code, s.i(0x80)), s.i(24));
  Value magnitude = s.op<arith::AndIOp>(code, s.i(kMagnitude));
  Value moved = s.op<arith::ShLIOp>(magnitude, s.i(format.shift()));
  Value normal = s.op<arith::AddIOp>(moved, s.i(format.exponents()));
  // The code of a subnormal is a number of units. Add this number to the bits
  // of the power of two that has the same unit, then subtract the power as a
  // float.
  Value magic = s.i(format.magic());
  Value subnormal = s.bits(s.op<arith::SubFOp>(
      s.floatOf(s.op<arith::AddIOp>(magnitude, magic)), s.floatOf(magic)));
  Value least = s.i(int64_t(1) << format.fraction);
  Value bits = s.select(s.cmp(I::ult, magnitude, least), subnormal, normal);
  Value special = s.op<arith::OrIOp>(moved, s.i(kInf));
  bits = s.select(s.cmp(I::ugt, magnitude, s.i(format.largest)), special, bits);
  return s.floatOf(s.op<arith::OrIOp>(sign, bits));
}

//===----------------------------------------------------------------------===//
// Powers of two: f8E8M0FNU, the exponents of f32
//===----------------------------------------------------------------------===//

static constexpr int64_t kLeastPower = 0x00400000; // 2^-127, as bits of f32
static constexpr int64_t kLargestPowerCode = 0xfe; // 2^127
static constexpr int64_t kPowerNaN = 0xff;

/// Returns the code (i8) of the least power of two >= x, saturated. Numbers <=
/// 0 become 2^-127.
static Value narrowPower(ShapedBuilder s, Value x) {
  using I = arith::CmpIPredicate;
  APFloat least(0.0f);
  auto bound = x.getDefiningOp<arith::MaximumFOp>();
  bool isNormal = bound &&
                  matchPattern(bound.getRhs(), m_ConstantFloat(&least)) &&
                  least >= APFloat(0x1p-126f);
  Value bits = s.bits(x);
  // A nonzero fraction carries into the exponent, which rounds up.
  Value code =
      s.op<arith::ShRUIOp>(s.op<arith::AddIOp>(bits, s.i(0x7fffff)), s.i(23));
  code = s.op<arith::MinUIOp>(code, s.i(kLargestPowerCode));
  if (!isNormal)
    code = s.select(s.cmp(I::sle, bits, s.i(kLeastPower)), s.i(0), code);
  Value isNaN = s.cmp(arith::CmpFPredicate::UNO, x, x);
  code = s.select(isNaN, s.i(kPowerNaN), code);
  return arith::TruncIOp::create(s.b, s.loc, s.typeOf(s.b.getI8Type()), code);
}

/// Extends `byte` (i8) to i32. If it was truncated from an i32, returns that
/// i32 instead. If it is a difference of bytes, subtracts in i32, because GPUs
/// have no byte arithmetic.
static Value extendByte(ShapedBuilder s, Value byte) {
  while (auto cast = byte.getDefiningOp<UnrealizedConversionCastOp>()) {
    auto inner = cast.getOperand(0).getDefiningOp<UnrealizedConversionCastOp>();
    if (!inner || inner.getOperand(0).getType() != byte.getType())
      break;
    byte = inner.getOperand(0);
  }
  if (auto truncation = byte.getDefiningOp<arith::TruncIOp>();
      truncation && truncation.getIn().getType() == s.i32())
    return truncation.getIn();
  auto difference = byte.getDefiningOp<arith::SubIOp>();
  if (!difference)
    return arith::ExtUIOp::create(s.b, s.loc, s.i32(), byte);
  return s.op<arith::AndIOp>(
      s.op<arith::SubIOp>(extendByte(s, difference.getLhs()),
                          extendByte(s, difference.getRhs())),
      s.i(0xff));
}

/// Returns the f32 with `byte` (i8) as its exponent.
static Value widenPower(ShapedBuilder s, Value byte) {
  using I = arith::CmpIPredicate;
  Value code = extendByte(s, byte);
  Value bits = s.op<arith::ShLIOp>(code, s.i(23));
  bits = s.select(s.cmp(I::eq, code, s.i(0)), s.i(kLeastPower), bits);
  Value isNaN = s.cmp(I::eq, code, s.i(kPowerNaN));
  return s.floatOf(s.select(isNaN, s.i(0x7fc00000), bits));
}

//===----------------------------------------------------------------------===//
// By an instruction, two elements at once
//===----------------------------------------------------------------------===//

/// Narrows by `cvt.rn.satfinite.e4m3x2.f32` or its e5m2 form. Keeps the two
/// bytes of each result together as an i16. Separate bytes would be joined
/// again by way of words with an undefined half, and such words crash ptxas
/// 13.0 for sm_90 and sm_100.
static Value narrowByInstruction(OpBuilder &b, Location loc, Format format,
                                 Value x) {
  Type i8 = b.getI8Type(), i16 = b.getI16Type();
  auto type = dyn_cast<VectorType>(x.getType());
  auto element = [&](int64_t i) -> Value {
    return type ? vector::ExtractOp::create(b, loc, x, i) : x;
  };
  auto convert = [&](Value low, Value high) -> Value {
    Value bytes = buildNarrowFp8Pair(b, loc, low, high, format.type);
    Value pair =
        vector::BitCastOp::create(b, loc, VectorType::get({1}, i16), bytes);
    return vector::ExtractOp::create(b, loc, pair, 0);
  };
  int64_t count = type ? type.getNumElements() : 1;
  if (count == 1) {
    Value byte =
        arith::TruncIOp::create(b, loc, i8, convert(element(0), element(0)));
    return type ? vector::BroadcastOp::create(b, loc, VectorType::get({1}, i8),
                                              byte)
                : byte;
  }
  assert(count % 2 == 0 && "expected a pack of a power of two of elements");
  SmallVector<Value> pairs;
  for (int64_t i = 0; i < count; i += 2)
    pairs.push_back(convert(element(i), element(i + 1)));
  Value words = vector::FromElementsOp::create(
      b, loc, VectorType::get({count / 2}, i16), pairs);
  return vector::BitCastOp::create(b, loc, VectorType::get({count}, i8), words);
}

/// Returns a pair (i16) with `byte` as its low byte. If `byte` was truncated
/// from an i16, returns that i16; otherwise extends `byte` with zeros.
static Value getPair(OpBuilder &b, Location loc, Value byte) {
  if (auto truncation = byte.getDefiningOp<arith::TruncIOp>())
    if (truncation.getIn().getType().isInteger(16))
      return truncation.getIn();
  return arith::ExtUIOp::create(b, loc, b.getI16Type(), byte);
}

/// Widens by `cvt.rn.f16x2.e4m3x2` or its e5m2 form. f16 represents every
/// number of both formats.
static Value widenByInstruction(OpBuilder &b, Location loc, Format format,
                                Value bytes) {
  Type i8 = b.getI8Type(), i16 = b.getI16Type(), f32 = b.getF32Type();
  auto type = dyn_cast<VectorType>(bytes.getType());
  int64_t count = type ? type.getNumElements() : 1;
  auto convert = [&](Value pair, int64_t used) {
    Value two = vector::BitCastOp::create(
        b, loc, VectorType::get({2}, i8),
        vector::BroadcastOp::create(b, loc, VectorType::get({1}, i16), pair));
    Value halves = buildWidenFp8Pair(b, loc, two, format.type);
    SmallVector<Value> wide;
    for (int64_t i = 0; i < used; ++i) {
      Value half = vector::ExtractOp::create(b, loc, halves, i);
      wide.push_back(arith::ExtFOp::create(b, loc, f32, half));
    }
    return wide;
  };
  SmallVector<Value> elements;
  if (count == 1) {
    Value byte =
        type ? b.createOrFold<vector::ExtractOp>(loc, bytes, 0) : bytes;
    elements = convert(getPair(b, loc, byte), 1);
    if (!type)
      return elements.front();
  } else {
    Value pairs = vector::BitCastOp::create(
        b, loc, VectorType::get({count / 2}, i16), bytes);
    for (int64_t i = 0; i < count / 2; ++i)
      llvm::append_range(
          elements, convert(vector::ExtractOp::create(b, loc, pairs, i), 2));
  }
  return vector::FromElementsOp::create(b, loc, VectorType::get({count}, f32),
                                        elements);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Returns `x` without a clamp to the finite range of `type`, since the
/// conversion saturates anyway. A clamp is in the kernel's source, or was
/// inserted because upstream's folds of conversions do not saturate.
static Value dropBounds(Value x, Type type) {
  bool isE4M3 = isa<Float8E4M3FNType>(getElementTypeOrSelf(type));
  float largest = isPower(type) ? 0x1p127f : isE4M3 ? 448.0f : 57344.0f;
  float least = isPower(type) ? 0x1p-127f : -largest;
  Value unbounded =
      getUnclamped<arith::MinimumFOp, arith::MaximumFOp>(x, least, largest);
  return unbounded ? unbounded : x;
}

namespace {
/// The ways in which the target converts.
struct Conversions {
  bool isOnGPU;
  bool byInstruction; ///< fp8 conversion instructions exist
  bool asBits;        ///< narrowing to fp4 compares positive floats as integers
};
} // namespace

/// Erases the ops of a clamp that ends in `x`, as far as they are unused.
static void eraseDeadBounds(Value x) {
  while (Operation *op = x.getDefiningOp()) {
    if (!op->use_empty() || !isa<arith::MaximumFOp, arith::MinimumFOp,
                                 arith::MaxNumFOp, arith::MinNumFOp>(op))
      return;
    x = op->getOperand(0);
    op->erase();
  }
}

/// Returns the code of `type` (i8 or i4) of the number nearest to x. If `type`
/// has only powers of two, returns the code of the least one that is >= x.
static Value narrowToBits(OpBuilder &b, Location loc, Type type, Value x,
                          Conversions has) {
  if (!sharesByte(type))
    x = dropBounds(x, type);
  ShapedBuilder s(b, loc, x.getType());
  if (sharesByte(type))
    return has.isOnGPU ? narrowFp4OnGPU(s, x, has.asBits) : narrowFp4(s, x);
  if (isPower(type))
    return narrowPower(s, x);
  return has.byInstruction ? narrowByInstruction(b, loc, Format::of(type), x)
                           : narrowByIntegers(s, Format::of(type), x);
}

/// Folds the narrowing of a widened power of two to the original code.
static void foldPower(arith::TruncFOp op) {
  if (!isPower(op.getType()))
    return;
  Value bounded = op.getIn(), x = dropBounds(bounded, op.getType());
  auto widening = x.getDefiningOp<arith::ExtFOp>();
  if (!widening || widening.getIn().getType() != op.getType())
    return;
  op.replaceAllUsesWith(widening.getIn());
  op.erase();
  eraseDeadBounds(bounded);
}

static Value narrow(OpBuilder &b, arith::TruncFOp op, Conversions has) {
  Value bits = narrowToBits(b, op.getLoc(), op.getType(), op.getIn(), has);
  return UnrealizedConversionCastOp::create(b, op.getLoc(), op.getType(), bits)
      .getResult(0);
}

/// Returns the bits of `narrow`. If it was cast from bits, returns those bits.
static Value castToBits(OpBuilder &b, Value narrow, Type type) {
  auto cast = narrow.getDefiningOp<UnrealizedConversionCastOp>();
  if (cast && cast.getOperand(0).getType() == type)
    return cast.getOperand(0);
  return UnrealizedConversionCastOp::create(b, narrow.getLoc(), type, narrow)
      .getResult(0);
}

static Value widen(OpBuilder &b, arith::ExtFOp op, Conversions has) {
  Location loc = op.getLoc();
  Type type = op.getIn().getType();
  ShapedBuilder s(b, loc, op.getType());
  Type bits = b.getIntegerType(sharesByte(type) ? 4 : 8);
  Value bytes = castToBits(b, op.getIn(), s.typeOf(bits));
  if (sharesByte(type))
    return widenFp4(s, bytes);
  if (isPower(type))
    return widenPower(s, bytes);
  return has.byInstruction ? widenByInstruction(b, loc, Format::of(type), bytes)
                           : widenByIntegers(s, Format::of(type), bytes);
}

namespace {
class ConvertFp8Pass : public mlafix::impl::ConvertFp8PassBase<ConvertFp8Pass> {
public:
  void runOnOperation() override {
    // `asBits`: narrowing to fp4 takes the minimum of three positive floats.
    // Compare them as integers if the target has no three-operand minimum for
    // floats: sm_90 has one for integers.
    MachineModel machine = getMachine(getOperation());
    Conversions has{isGPU(getTarget(getOperation())),
                    machine.fp8Conversion != 0, machine.minimumOfThree == 0};
    getOperation().walk(foldPower);
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      auto isHere = [](Type type) { return isFp8(type) || sharesByte(type); };
      if ((isa<arith::TruncFOp>(op) && isHere(op->getResult(0).getType())) ||
          (isa<arith::ExtFOp>(op) && isHere(op->getOperand(0).getType())))
        ops.push_back(op);
    });
    LDBG() << getOperation().getSymName() << ": " << ops.size()
           << " conversions, by "
           << (has.byInstruction ? "an instruction" : "integer arithmetic");
    for (Operation *op : ops) {
      OpBuilder b(op);
      Value operand = op->getOperand(0);
      auto truncation = dyn_cast<arith::TruncFOp>(op);
      Value result = truncation ? narrow(b, truncation, has)
                                : widen(b, cast<arith::ExtFOp>(op), has);
      op->getResult(0).replaceAllUsesWith(result);
      op->erase();
      if (truncation)
        eraseDeadBounds(operand);
    }
  }
};
} // namespace
