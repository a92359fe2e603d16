//===- Fp4.h - f4E2M1FN from and to f32 -------------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Two elements share a byte. Their numbers are 0, 0.5, 1, 1.5, 2, 3, 4 and 6.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_CONVERSION_FP4_H
#define MLAFIX_CONVERSION_FP4_H

#include "lib/Conversion/ShapedBuilder.h"

namespace mlafix {

/// The codes nearest to the elements of `x`, a vector of an even number of f32
/// that a minimum and a maximum have put within -6 and 6: a vector of i4.
mlir::Value narrowFp4(ShapedBuilder s, mlir::Value x);

/// The same in the fewest instructions of a GPU; the number of elements is 2, 4
/// or a multiple of 8. `asBits`: positive floats are compared as integers.
mlir::Value narrowFp4OnGPU(ShapedBuilder s, mlir::Value x, bool asBits);

/// The f32 of which `halves`, a vector of i4, are the codes.
mlir::Value widenFp4(ShapedBuilder s, mlir::Value halves);

} // namespace mlafix

#endif // MLAFIX_CONVERSION_FP4_H
