//===- NarrowFp8.cpp - f32 to fp8 e4m3fn in memory ------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/Passes.h"
#include "lib/Conversion/ShapedBuilder.h"
#include "lib/Transforms/Target.h"
#include "lib/Transforms/ThreadOps.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "mlafix-narrow-fp8"

namespace mlafix {
#define GEN_PASS_DEF_NARROWFP8PASS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlafix

using namespace mlir;
using namespace mlafix;

static bool isFp8(Type type) {
  return isa<Float8E4M3FNType>(getElementTypeOrSelf(type));
}

/// The bits of e4m3fn nearest to x, i8: 4 bits of exponent (bias 7), 3 of
/// fraction, no infinities, and the one NaN 0x7f, as NVIDIA's instruction makes
/// it.
static Value narrowByIntegers(ShapedBuilder s, Value x) {
  using I = arith::CmpIPredicate;
  constexpr int64_t kMinNormal = 0x3c800000; // 2^-6
  constexpr int64_t kMagic = 0x46800000;     // 2^14: its unit is 2^-9
  constexpr int64_t kInf = 0x7f800000;
  constexpr int64_t kLargest = 0x7e; // 448
  constexpr int64_t kNaN = 0x7f;
  Value bits = s.bits(x);
  Value sign =
      s.op<arith::AndIOp>(s.op<arith::ShRUIOp>(bits, s.i(24)), s.i(0x80));
  Value magnitude = s.op<arith::AndIOp>(bits, s.i(0x7fffffff));
  Value odd =
      s.op<arith::AndIOp>(s.op<arith::ShRUIOp>(magnitude, s.i(20)), s.i(1));
  Value rounded =
      s.op<arith::AddIOp>(magnitude, s.op<arith::AddIOp>(odd, s.i(0x7ffff)));
  Value normal = s.op<arith::ShRUIOp>(
      s.op<arith::SubIOp>(rounded, s.i(120 << 23)), s.i(20));
  // Below 2^-6 the unit is 2^-9, to which adding 2^14 rounds.
  Value subnormal = s.op<arith::SubIOp>(
      s.bits(s.op<arith::AddFOp>(s.floatOf(magnitude), s.floatOf(s.i(kMagic)))),
      s.i(kMagic));
  Value code =
      s.select(s.cmp(I::ult, magnitude, s.i(kMinNormal)), subnormal, normal);
  code = s.select(s.cmp(I::ugt, code, s.i(kLargest)), s.i(kLargest), code);
  code = s.op<arith::OrIOp>(sign, code);
  code = s.select(s.cmp(I::ugt, magnitude, s.i(kInf)), s.i(kNaN), code);
  return arith::TruncIOp::create(s.b, s.loc, s.typeOf(s.b.getI8Type()), code);
}

/// The same by `cvt.rn.satfinite.e4m3x2.f32`, two elements at once. Its pairs
/// stay whole: taken apart, they are put together again from words of which one
/// half was never written, and ptxas 13.0 ends with a segmentation fault on
/// those for sm_90 and sm_100.
static Value narrowByInstruction(OpBuilder &b, Location loc, Value x) {
  Type i8 = b.getI8Type(), i16 = b.getI16Type();
  auto type = dyn_cast<VectorType>(x.getType());
  auto element = [&](int64_t i) -> Value {
    return type ? vector::ExtractOp::create(b, loc, x, i) : x;
  };
  auto convert = [&](Value low, Value high) -> Value {
    Value pair =
        vector::BitCastOp::create(b, loc, VectorType::get({1}, i16),
                                  buildNarrowFp8Pair(b, loc, low, high));
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

namespace {
class NarrowFp8Pass : public mlafix::impl::NarrowFp8PassBase<NarrowFp8Pass> {
public:
  void runOnOperation() override {
    bool hasInstruction = getMachine(getOperation()).fp8Conversion;
    SmallVector<arith::TruncFOp> ops;
    getOperation().walk([&](arith::TruncFOp op) {
      if (isFp8(op.getType()))
        ops.push_back(op);
    });
    LDBG() << getOperation().getSymName() << ": " << ops.size()
           << " conversions, by "
           << (hasInstruction ? "an instruction" : "integer arithmetic");
    for (arith::TruncFOp op : ops) {
      OpBuilder b(op);
      Location loc = op.getLoc();
      Value x = op.getIn();
      Value bits =
          hasInstruction
              ? narrowByInstruction(b, loc, x)
              : narrowByIntegers(ShapedBuilder(b, loc, x.getType()), x);
      Value cast =
          UnrealizedConversionCastOp::create(b, loc, op.getType(), bits)
              .getResult(0);
      op.replaceAllUsesWith(cast);
      op.erase();
    }
  }
};
} // namespace
