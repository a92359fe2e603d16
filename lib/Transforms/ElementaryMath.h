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

/// e^x by way of a target's 2^x, with an error of a few units in the last place
/// for all x: what rounding takes from the exponent is put back.
mlir::Value buildExp(ShapedBuilder s, mlir::Value x, UnaryFn exp2);

/// 1 / x rounded to nearest, of x in [2^-64, 2^64]; `near` is off by 1 unit in
/// the last place at most.
mlir::Value buildReciprocal(ShapedBuilder s, mlir::Value x, mlir::Value near);

/// x / divisor rounded to nearest, by the reciprocal of the divisor that
/// buildReciprocal gives: of |x| up to 2^62 whose quotient is 0, or 2^-26 and
/// more. Smaller ones come out below 2^-25, with their sign; they are rounded
/// to nearest, too, of |x| from 2^-100 on and divisors up to 2^20.
mlir::Value buildQuotient(ShapedBuilder s, mlir::Value x, mlir::Value divisor,
                          mlir::Value reciprocal);

/// log2(x), with an error of a few units in the last place for all x, those
/// near 1 included; log2(1) is exactly 0. `divide` is called with divisors in
/// [1.7, 2.5] alone.
mlir::Value buildLog2(ShapedBuilder s, mlir::Value x, BinaryFn divide);

/// sin(x), or cos(x), for |x| up to 2^23, beyond which the result is of no use:
/// off by at most 2e-7.
mlir::Value buildSine(ShapedBuilder s, mlir::Value x, bool isCosine);

/// erf(x) by way of a target's 2^x, off by at most 3e-7 of itself.
mlir::Value buildErf(ShapedBuilder s, mlir::Value x, UnaryFn exp2);

/// bf16 as f32, by integer arithmetic.
mlir::Value extendBF16(ShapedBuilder s, mlir::Value x);

/// The bits of bf16 nearest to f32 x, in the upper halves of i32: rounded to
/// nearest even; NaN keeps its upper bits and becomes quiet.
mlir::Value roundToBF16(ShapedBuilder s, mlir::Value x);

/// Checks an op that a target has not written out itself: of `math`, only what
/// becomes instructions and never a library call. An error at its location.
llvm::LogicalResult checkRemainingMath(mlir::Operation *op);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ELEMENTARYMATH_H
