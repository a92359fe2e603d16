//===- ShapedBuilder.h - arithmetic of one shape ----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_SHAPEDBUILDER_H
#define MLAFIX_TRANSFORMS_SHAPEDBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlafix {

/// Builds arithmetic on scalars or vectors of one shape. Constants have this
/// shape, too.
class ShapedBuilder {
public:
  ShapedBuilder(mlir::OpBuilder &b, mlir::Location loc, mlir::Type like)
      : b(b), loc(loc), shape(mlir::dyn_cast<mlir::VectorType>(like)) {}

  mlir::Type typeOf(mlir::Type element) const {
    return shape ? mlir::Type(mlir::VectorType::get(shape.getShape(), element))
                 : element;
  }
  mlir::Type f32() const { return typeOf(b.getF32Type()); }
  mlir::Type i32() const { return typeOf(b.getI32Type()); }
  mlir::Type i16() const { return typeOf(b.getIntegerType(16)); }

  mlir::Value constant(mlir::Type element, mlir::Attribute value) {
    auto typed = mlir::cast<mlir::TypedAttr>(value);
    if (shape)
      typed = mlir::DenseElementsAttr::get(
          mlir::VectorType::get(shape.getShape(), element), value);
    return mlir::arith::ConstantOp::create(b, loc, typed);
  }
  mlir::Value f(float value) {
    return constant(b.getF32Type(), b.getF32FloatAttr(value));
  }
  mlir::Value i(int64_t value) {
    return constant(
        b.getI32Type(),
        b.getIntegerAttr(b.getI32Type(),
                         llvm::APInt(32, static_cast<uint32_t>(value))));
  }
  mlir::Value bits(mlir::Value x) {
    return mlir::arith::BitcastOp::create(b, loc, i32(), x);
  }
  mlir::Value floatOf(mlir::Value x) {
    return mlir::arith::BitcastOp::create(b, loc, f32(), x);
  }
  mlir::Value select(mlir::Value p, mlir::Value x, mlir::Value y) {
    return mlir::arith::SelectOp::create(b, loc, p, x, y);
  }
  mlir::Value cmp(mlir::arith::CmpFPredicate predicate, mlir::Value x,
                  mlir::Value y) {
    return mlir::arith::CmpFOp::create(b, loc, predicate, x, y);
  }
  mlir::Value cmp(mlir::arith::CmpIPredicate predicate, mlir::Value x,
                  mlir::Value y) {
    return mlir::arith::CmpIOp::create(b, loc, predicate, x, y);
  }
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z) {
    return mlir::math::FmaOp::create(b, loc, x, y, z);
  }
  template <typename OpTy> mlir::Value op(mlir::Value x, mlir::Value y) {
    return OpTy::create(b, loc, x, y);
  }

  mlir::OpBuilder &b;
  mlir::Location loc;

private:
  mlir::VectorType shape;
};

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_SHAPEDBUILDER_H
