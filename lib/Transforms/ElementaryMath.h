//===- ElementaryMath.h - functions that targets share ----------*- C++ -*-===//
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

/// e^x from a target's 2^x, within a few ulps for all x: compensates the
/// rounding of the exponent.
mlir::Value buildExp(ShapedBuilder s, mlir::Value x, UnaryFn exp2);

/// 1 / x rounded to nearest for x in [2^-64, 2^64]; `near` is within 1 ulp.
mlir::Value buildReciprocal(ShapedBuilder s, mlir::Value x, mlir::Value near);

/// x / divisor rounded to nearest, given the divisor's reciprocal from
/// buildReciprocal(). Valid for |x| up to 2^62 if the quotient is 0 or at least
/// 2^-26. Smaller quotients come out below 2^-25 with the right sign; they are
/// also rounded to nearest if |x| >= 2^-100 and the divisor is at most 2^20.
mlir::Value buildQuotient(ShapedBuilder s, mlir::Value x, mlir::Value divisor,
                          mlir::Value reciprocal);

/// log2(x) within a few ulps for all x, also near 1; log2(1) is exactly 0.
/// `divide` is only called with divisors in [1.7, 2.5].
mlir::Value buildLog2(ShapedBuilder s, mlir::Value x, BinaryFn divide);

/// sin(x) or cos(x) with absolute error 2e-7 for |x| up to 2^23; larger
/// arguments give meaningless results.
mlir::Value buildSine(ShapedBuilder s, mlir::Value x, bool isCosine);

/// erf(x) from a target's 2^x, with relative error 3e-7.
mlir::Value buildErf(ShapedBuilder s, mlir::Value x, UnaryFn exp2);

/// tanh(x) with relative error 6e-7. The target's `exp2` and `reciprocal` must
/// be within 2 ulps, and 0 or inf outside of f32.
mlir::Value buildTanh(ShapedBuilder s, mlir::Value x, UnaryFn exp2,
                      UnaryFn reciprocal);

/// Extends bf16 to f32 by integer arithmetic.
mlir::Value extendBF16(ShapedBuilder s, mlir::Value x);

/// Rounds f32 x to bf16, to nearest even; the result is in the upper half of an
/// i32. NaN keeps its upper bits and becomes quiet.
mlir::Value roundToBF16(ShapedBuilder s, mlir::Value x);

/// Checks an op that the target has not expanded: a `math` op must map to
/// instructions, not to library calls. Reports an error otherwise.
llvm::LogicalResult checkRemainingMath(mlir::Operation *op);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ELEMENTARYMATH_H
