//===- ElementaryMath.h - functions that all targets share ------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_ELEMENTARYMATH_H
#define MLAFIX_TRANSFORMS_ELEMENTARYMATH_H

#include "lib/Transforms/ShapedBuilder.h"

namespace mlafix {

using UnaryFn = llvm::function_ref<mlir::Value(mlir::Value)>;
using BinaryFn = llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)>;

/// Builds e^x from `exp2`, the 2^x of a target. The error is a few ulps for all
/// x, because the rounding of the exponent is compensated.
mlir::Value buildExp(ShapedBuilder s, mlir::Value x, UnaryFn exp2);

/// Builds 1 / x, rounded to nearest, for x in [2^-64, 2^64]. `near`
/// approximates 1 / x within 1 ulp.
mlir::Value buildReciprocal(ShapedBuilder s, mlir::Value x, mlir::Value near);

/// Builds x / divisor for |x| up to 2^62. `reciprocal` is the result of
/// buildReciprocal() for the divisor. The quotient is rounded to nearest if it
/// is 0 or at least 2^-26 in magnitude, or if |x| >= 2^-100 and the divisor is
/// at most 2^20. Other quotients come out below 2^-25 in magnitude, with the
/// right sign.
mlir::Value buildQuotient(ShapedBuilder s, mlir::Value x, mlir::Value divisor,
                          mlir::Value reciprocal);

/// Builds log2(x) within a few ulps for all x, also near 1. log2(1) is exactly
/// 0. `divide` is only called with divisors in [1.7, 2.5].
mlir::Value buildLog2(ShapedBuilder s, mlir::Value x, BinaryFn divide);

/// Builds cos(x) if `isCosine` is true, else sin(x). The absolute error is 2e-7
/// for |x| up to 2^23; results for larger |x| are meaningless.
mlir::Value buildSine(ShapedBuilder s, mlir::Value x, bool isCosine);

/// Builds erf(x) from `exp2`, the 2^x of a target. The relative error is 3e-7.
mlir::Value buildErf(ShapedBuilder s, mlir::Value x, UnaryFn exp2);

/// Builds tanh(x) with a relative error of 6e-7. `exp2` and `reciprocal` are
/// functions of the target. They must be within 2 ulps, and must give 0 or inf
/// for results outside the range of f32.
mlir::Value buildTanh(ShapedBuilder s, mlir::Value x, UnaryFn exp2,
                      UnaryFn reciprocal);

/// Returns true if `value` is the constant `number`, an integer or a float, or
/// a splat of it.
bool isConstantNumber(mlir::Value value, double number);

/// Returns y if `x` is the maximum (`MaxOp`) of `least` and the minimum
/// (`MinOp`) of y and `largest`, else null. Constants must be right operands.
template <typename MinOp, typename MaxOp>
mlir::Value getUnclamped(mlir::Value x, double least, double largest) {
  auto upper = x.getDefiningOp<MaxOp>();
  if (!upper || !isConstantNumber(upper.getRhs(), least))
    return {};
  auto lower = upper.getLhs().template getDefiningOp<MinOp>();
  return lower && isConstantNumber(lower.getRhs(), largest) ? lower.getLhs()
                                                            : mlir::Value();
}

/// Extends bf16 to f32 by integer arithmetic.
mlir::Value extendBF16(ShapedBuilder s, mlir::Value x);

/// Rounds an f32 to the nearest bf16, ties to even. The result is in the upper
/// half of an i32. NaN keeps its upper bits and becomes quiet.
mlir::Value roundToBF16(ShapedBuilder s, mlir::Value x);

/// Reports an error if `op`, which the target has not expanded, is a `math` op
/// that would become a library call.
llvm::LogicalResult checkRemainingMath(mlir::Operation *op);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ELEMENTARYMATH_H
