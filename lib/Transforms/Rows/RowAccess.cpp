//===- RowAccess.cpp - conversion of and access to parts of a row ---------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Rows/RowAccess.h"
#include "lib/Transforms/Layout/LongRows.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlafix;

static bool isElementwise(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1;
}

LogicalResult mlafix::verifyRowOps(KernelOp kernel) {
  if (kernel.getGrid())
    return kernel.emitError() << "expected a kernel without a grid, got one "
                                 "whose grid is still to become threads or "
                                 "loops";
  WalkResult walk = kernel.walk([&](Operation *op) -> WalkResult {
    if (!isTileOp(op) || isPackwise(op) ||
        isa<ReduceOp, ScanOp, SwapOp, BroadcastOp, MergeLoopOp, YieldOp,
            scf::ForOp, scf::IfOp, scf::YieldOp, scf::WhileOp,
            scf::ConditionOp>(op))
      return WalkResult::advance();
    if (isa<arith::ConstantOp>(op))
      return op->emitError() << "expected a constant row whose elements are "
                                "all one value, got different elements";
    if (isElementwise(op))
      return op->emitError()
             << "expected rows of f32, i1, i8, i32 or i64, got a row of index";
    return op->emitError()
           << "expected an elementwise op with one result, a load, a store, a "
              "reduction, a scan, a swap, a broadcast, a splat, an iota or "
              "control flow on a row, got '"
           << op->getName() << "'";
  });
  return failure(walk.wasInterrupted());
}

/// Returns the scalar or vector type `type` with another element type.
static Type withElement(Type type, Type element) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(VectorType::get(vector.getShape(), element)) : element;
}

/// Returns the signless form of a memory type, since arith has no unsigned
/// integers.
static Type dropSign(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isUnsignedInteger()
             ? withElement(type, getComputeType(element))
             : type;
}

static Value castSign(OpBuilder &b, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  return UnrealizedConversionCastOp::create(b, loc, type, value).getResult(0);
}

static Value dropSign(OpBuilder &b, Location loc, Value value) {
  return castSign(b, loc, value, dropSign(value.getType()));
}

/// Converts a float from memory to an integer with the same bits, since kernels
/// that only move floats treat them as integers. Values of other types stay
/// unchanged.
static Value toBits(OpBuilder &b, Location loc, Value value) {
  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(value.getType()));
  if (!element)
    return value;
  Type bits =
      withElement(value.getType(), b.getIntegerType(element.getWidth()));
  return arith::BitcastOp::create(b, loc, bits, value);
}

/// Builds an f32 constant in the shape of `value`.
static Value constantLike(OpBuilder &b, Location loc, Value value,
                          double number) {
  TypedAttr attr = b.getF32FloatAttr(number);
  if (auto shaped = dyn_cast<ShapedType>(value.getType()))
    attr = DenseElementsAttr::get(shaped, Attribute(attr));
  return arith::ConstantOp::create(b, loc, attr);
}

/// Extends a float from memory to f32. Elements where `predicate` is false
/// become 0. f8E8M0FNU has no zero that a masked load could yield, so this
/// function selects 0 for such elements.
static Value widenFloat(OpBuilder &b, Location loc, Type type, Value value,
                        Value predicate) {
  Type element = getElementTypeOrSelf(value.getType());
  value = arith::ExtFOp::create(b, loc, type, value);
  if (!predicate || !isa<Float8E8M0FNUType>(element))
    return value;
  return arith::SelectOp::create(b, loc, predicate, value,
                                 constantLike(b, loc, value, 0));
}

Value mlafix::widen(OpBuilder &b, Location loc, Value source, Type result,
                    Value value, Value predicate) {
  result = getElementTypeOrSelf(result);
  Type type = withElement(value.getType(), result);
  if (type == value.getType())
    return value;
  if (isa<FloatType>(result))
    return widenFloat(b, loc, type, value, predicate);
  value = toBits(b, loc, value);
  Type element = cast<MemRefType>(source.getType()).getElementType();
  if (element.isUnsignedInteger() || element.isInteger(1))
    return arith::ExtUIOp::create(b, loc, type, value);
  return arith::ExtSIOp::create(b, loc, type, value);
}

/// Clamps `value` to the range from `low` to `high`. `MinOp` and `MaxOp` define
/// what happens to NaN.
template <typename MinOp, typename MaxOp>
static Value clamp(OpBuilder &b, Location loc, Value value, double low,
                   double high) {
  value = MinOp::create(b, loc, value, constantLike(b, loc, value, high));
  return MaxOp::create(b, loc, value, constantLike(b, loc, value, low));
}

/// Clamps `value` to the finite range of the memory type `to`, if the
/// conversion to `to` alone would not saturate:
///   - f8E4M3FN: MLIR folds the conversion of an integer to f32 and the
///     truncation to a single conversion, which gives NaN out of range.
///   - f8E5M2: MLIR folds the conversion of an infinity to an infinity.
///     mlafix-convert-fp8 removes the clamp if the conversion saturates.
///   - f8E8M0FNU: the type has no zeros, signs or infinities.
///   - f4E2M1FN: the type has neither infinities nor NaN.
static Value saturate(OpBuilder &b, Location loc, Value value, Type to) {
  if (isa<Float8E5M2Type>(to))
    return clamp<arith::MinimumFOp, arith::MaximumFOp>(b, loc, value, -57344,
                                                       57344);
  if (isa<Float8E8M0FNUType>(to))
    return clamp<arith::MinimumFOp, arith::MaximumFOp>(b, loc, value, 0x1p-127,
                                                       0x1p127);
  // f4E2M1FN has no NaN. NaN becomes 6, as in the GPU instruction.
  if (sharesByte(to))
    return clamp<arith::MinNumFOp, arith::MaxNumFOp>(b, loc, value, -6, 6);
  if (isa<Float8E4M3FNType>(to) &&
      isa_and_nonnull<arith::SIToFPOp, arith::UIToFPOp>(value.getDefiningOp()))
    return clamp<arith::MinNumFOp, arith::MaxNumFOp>(b, loc, value, -448, 448);
  return value;
}

/// Rounds an f32 to the nearest integer that fits a byte, ties to even. NaN
/// becomes 0. The result is an i32.
static Value byteOfFloat(OpBuilder &b, Location loc, Value value,
                         bool isUnsigned) {
  Value isNaN =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, value, value);
  value = arith::SelectOp::create(b, loc, isNaN, constantLike(b, loc, value, 0),
                                  value);
  value = clamp<arith::MinNumFOp, arith::MaxNumFOp>(
      b, loc, value, isUnsigned ? 0 : -128, isUnsigned ? 255 : 127);
  // Adjacent floats near 1.5 * 2^23 differ by 1, so adding this number rounds
  // `value` to an integer. The low bits of the sum are this integer. But ptxas
  // 13.0 takes the low byte of such a sum for a saturating conversion of the
  // sum, and so computes 255. Therefore the number is subtracted again.
  Value unit = constantLike(b, loc, value, 12582912.0);
  value = arith::AddFOp::create(b, loc, value, unit);
  value = arith::SubFOp::create(b, loc, value, unit);
  Type i32 = withElement(value.getType(), b.getI32Type());
  return arith::FPToSIOp::create(b, loc, i32, value);
}

/// Clamps the i32 or i64 `value` to the range of a byte.
static Value clampToByte(OpBuilder &b, Location loc, Value value,
                         bool isUnsigned) {
  auto constant = [&](int64_t number) -> Value {
    Type element = getElementTypeOrSelf(value.getType());
    TypedAttr attr = b.getIntegerAttr(element, number);
    if (auto shaped = dyn_cast<ShapedType>(value.getType()))
      attr = DenseElementsAttr::get(shaped, Attribute(attr));
    return arith::ConstantOp::create(b, loc, attr);
  };
  value =
      arith::MinSIOp::create(b, loc, value, constant(isUnsigned ? 255 : 127));
  return arith::MaxSIOp::create(b, loc, value, constant(isUnsigned ? 0 : -128));
}

Value mlafix::narrow(OpBuilder &b, Location loc, Value target, Value value) {
  Type element = cast<MemRefType>(target.getType()).getElementType();
  Type type = withElement(value.getType(), element);
  Type from = getElementTypeOrSelf(value.getType());
  if (type == value.getType())
    return value;
  if (isa<FloatType>(element) && from.isF32())
    return arith::TruncFOp::create(b, loc, type,
                                   saturate(b, loc, value, element));
  bool isUnsigned = element.isUnsignedInteger();
  if (from.isF32())
    value = byteOfFloat(b, loc, value, isUnsigned);
  else if (element.isInteger(8) && !from.isInteger(8) &&
           !getDTypeVariable(target))
    value = clampToByte(b, loc, value, isUnsigned);
  unsigned to = element.getIntOrFloatBitWidth(),
           width =
               getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth();
  Type bits = withElement(value.getType(), b.getIntegerType(to));
  if (width > to)
    value = arith::TruncIOp::create(b, loc, bits, value);
  if (width < to)
    value = arith::ExtSIOp::create(b, loc, bits, value);
  if (isa<FloatType>(element)) // bits of a float that the kernel only moves
    return arith::BitcastOp::create(b, loc, type, value);
  return castSign(b, loc, value, type);
}

/// Builds zero of the memory type `type`.
static Value zeroInMemory(OpBuilder &b, Location loc, Type type) {
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(dropSign(type)));
  return castSign(b, loc, zero, type);
}

// On a GPU, a predicated load becomes a masked load with a uniform mask, which
// turns into a branch only after all optimisation. A branch created here would
// attract the arithmetic on the loaded value. This arithmetic would wait for
// the load before other loads are issued.
Value mlafix::readMemory(OpBuilder &b, Location loc, const RowLayout &layout,
                         Value predicate, Type type, Value source,
                         ValueRange indices, int64_t first) {
  auto vector = dyn_cast<VectorType>(type);
  llvm::MaybeAlign alignment(vector ? layout.alignmentOf(source, vector, first)
                                    : getDTypeBytes(type));
  auto read = [&](OpBuilder &b) -> Value {
    if (!vector)
      return dropSign(b, loc, memref::LoadOp::create(b, loc, source, indices));
    return dropSign(b, loc,
                    vector::LoadOp::create(b, loc, type, source, indices,
                                           /*nontemporal=*/false, alignment));
  };
  if (!predicate)
    return read(b);
  if (layout.isGPU) {
    VectorType pack = vector ? vector : VectorType::get({1}, type);
    Value mask = vector::BroadcastOp::create(
        b, loc, VectorType::get(pack.getShape(), b.getI1Type()), predicate);
    Value zero = zeroInMemory(b, loc, pack);
    Value value =
        dropSign(b, loc,
                 vector::MaskedLoadOp::create(b, loc, pack, source, indices,
                                              mask, zero, alignment));
    return vector ? value : Value(vector::ExtractOp::create(b, loc, value, 0));
  }
  Type signless = dropSign(type);
  auto guarded = scf::IfOp::create(b, loc, TypeRange{signless}, predicate,
                                   /*withElseRegion=*/true);
  OpBuilder then = guarded.getThenBodyBuilder(),
            otherwise = guarded.getElseBodyBuilder();
  scf::YieldOp::create(then, loc, read(then));
  Value zero = zeroInMemory(otherwise, loc, signless);
  scf::YieldOp::create(otherwise, loc, zero);
  return guarded.getResult(0);
}

SmallVector<Value> mlafix::toElements(OpBuilder &b, Location loc, Value pack) {
  SmallVector<Value> elements;
  for (int64_t i = 0, n = cast<VectorType>(pack.getType()).getNumElements();
       i < n; ++i)
    elements.push_back(vector::ExtractOp::create(b, loc, pack, i));
  return elements;
}

void mlafix::writeIf(OpBuilder &b, Location loc, Value predicate,
                     function_ref<void(OpBuilder &)> write) {
  if (!predicate)
    return write(b);
  auto guarded = scf::IfOp::create(b, loc, predicate, /*withElseRegion=*/false);
  OpBuilder then = guarded.getThenBodyBuilder();
  write(then);
}

bool mlafix::isPackwise(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue());
  // The type `index` has no defined size in memory, so a pack cannot have it as
  // its element type.
  return isa<LoadOp, LoadIntoOp, StoreOp, StoreMembersOp, SplatOp, IotaOp>(
             op) ||
         (isElementwise(op) &&
          !getElementTypeOrSelf(op->getResult(0).getType()).isIndex());
}
