//===- NarrowFp8.cpp - f32 to fp8 e4m3fn in memory ------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/NarrowFp8.h"
#include "lib/Conversion/ShapedBuilder.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

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

/// The same by `cvt.rn.satfinite.e4m3x2.f32`, two elements at once.
static Value narrowByInstruction(OpBuilder &b, Location loc, Value x) {
  Type i8 = b.getI8Type();
  auto type = dyn_cast<VectorType>(x.getType());
  auto convert = [&](Value low, Value high) -> Value {
    // The first operand becomes the upper byte.
    return NVVM::ConvertF32x2ToF8x2Op::create(
        b, loc, VectorType::get({2}, i8), high, low, NVVM::FPRoundingMode::RN,
        NVVM::SaturationMode::SATFINITE, /*relu=*/false,
        Float8E4M3FNType::get(b.getContext()));
  };
  if (!type)
    return vector::ExtractOp::create(b, loc, convert(x, x), 0);
  int64_t count = type.getNumElements();
  auto bytes = VectorType::get({count}, i8);
  Value result = arith::ConstantOp::create(b, loc, b.getZeroAttr(bytes));
  for (int64_t i = 0; i < count; i += 2) {
    Value low = vector::ExtractOp::create(b, loc, x, i);
    Value high = i + 1 < count
                     ? Value(vector::ExtractOp::create(b, loc, x, i + 1))
                     : low;
    Value pair = convert(low, high);
    for (int64_t j = 0; j < 2 && i + j < count; ++j)
      result = vector::InsertOp::create(
          b, loc, vector::ExtractOp::create(b, loc, pair, j), result, i + j);
  }
  return result;
}

/// The bits of a constant.
static TypedAttr constantBits(OpBuilder &b, TypedAttr value) {
  if (auto element = dyn_cast<FloatAttr>(value))
    return b.getIntegerAttr(b.getI8Type(), element.getValue().bitcastToAPInt());
  auto elements = dyn_cast<DenseElementsAttr>(value);
  return elements ? TypedAttr(elements.bitcast(b.getI8Type())) : TypedAttr();
}

LogicalResult mlafix::narrowFp8(LLVM::LLVMFuncOp function, bool hasConvert) {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) {
    if (op->getNumResults() == 1 && isFp8(op->getResult(0).getType()))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    OpBuilder b(op);
    Location loc = op->getLoc();
    Value bits;
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      if (TypedAttr value = constantBits(b, constant.getValue()))
        bits = arith::ConstantOp::create(b, loc, value);
    } else if (auto truncation = dyn_cast<arith::TruncFOp>(op)) {
      Value x = truncation.getIn();
      bits = hasConvert
                 ? narrowByInstruction(b, loc, x)
                 : narrowByIntegers(ShapedBuilder(b, loc, x.getType()), x);
    }
    if (!bits)
      return op->emitError()
             << "expected f8e4m3fn only where it is stored, got "
                "arithmetic on it by '"
             << op->getName() << "'";
    // The stores ask for bytes: the two casts meet and cancel.
    Value cast = UnrealizedConversionCastOp::create(
                     b, loc, op->getResult(0).getType(), bits)
                     .getResult(0);
    op->getResult(0).replaceAllUsesWith(cast);
    op->erase();
  }
  return success();
}
