//===- F32Builder.h - f32 arithmetic ----------------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_STATES_F32BUILDER_H
#define MLAFIX_TRANSFORMS_STATES_F32BUILDER_H

#include "dialect/Mlafix.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

namespace mlafix {

/// Builds f32 arithmetic at one location.
class F32Builder {
public:
  F32Builder(mlir::OpBuilder &b, mlir::Location loc) : b(b), loc(loc) {}

  mlir::Value constant(float value) {
    return mlir::arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  }
  mlir::Value constantBool(bool value) {
    return mlir::arith::ConstantIntOp::create(b, loc, value, 1);
  }
  mlir::Value negInf() {
    return constant(-std::numeric_limits<float>::infinity());
  }
  mlir::Value equal(mlir::Value x, mlir::Value y) {
    return mlir::arith::CmpFOp::create(b, loc, mlir::arith::CmpFPredicate::OEQ,
                                       x, y);
  }
  mlir::Value less(mlir::Value x, mlir::Value y) {
    return mlir::arith::CmpFOp::create(b, loc, mlir::arith::CmpFPredicate::OLT,
                                       x, y);
  }
  mlir::Value select(mlir::Value p, mlir::Value x, mlir::Value y) {
    return mlir::arith::SelectOp::create(b, loc, p, x, y);
  }
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return mlir::arith::AddFOp::create(b, loc, x, y);
  }
  mlir::Value sub(mlir::Value x, mlir::Value y) {
    return mlir::arith::SubFOp::create(b, loc, x, y);
  }
  mlir::Value mul(mlir::Value x, mlir::Value y) {
    return mlir::arith::MulFOp::create(b, loc, x, y);
  }
  mlir::Value div(mlir::Value x, mlir::Value y) {
    return mlir::arith::DivFOp::create(b, loc, x, y);
  }
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z) {
    return mlir::math::FmaOp::create(b, loc, x, y, z);
  }
  mlir::Value exp2(mlir::Value x) {
    return mlir::math::Exp2Op::create(b, loc, x);
  }
  mlir::Value max(mlir::Value x, mlir::Value y) {
    return mlir::arith::MaximumFOp::create(b, loc, x, y);
  }
  mlir::Value min(mlir::Value x, mlir::Value y) {
    return mlir::arith::MinimumFOp::create(b, loc, x, y);
  }
  /// Broadcasts `x` to `type`, a row tile or a vector type.
  mlir::Value splat(mlir::Value x, mlir::Type type) {
    if (isRowTile(type))
      return SplatOp::create(b, loc, type, x);
    return mlir::vector::BroadcastOp::create(b, loc, type, x);
  }

private:
  mlir::OpBuilder &b;
  mlir::Location loc;
};

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_STATES_F32BUILDER_H
