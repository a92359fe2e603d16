//===- NarrowFp8.h - f32 to fp8 e4m3fn in memory ----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_CONVERSION_NARROWFP8_H
#define MLAFIX_CONVERSION_NARROWFP8_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlafix {

/// Replaces every truncation of f32 to f8E4M3FN in `function` by what makes its
/// bits, an i8 (round to nearest even, saturating at +-448, NaN stays NaN: N7),
/// and a cast of these to f8E4M3FN, for replaceFloatsByBits to remove.
/// `hasConvert`: the target has NVIDIA's instruction for it (sm_89 and later);
/// else integer arithmetic does the same, and gives the same bits.
void narrowFp8(mlir::LLVM::LLVMFuncOp function, bool hasConvert);

} // namespace mlafix

#endif // MLAFIX_CONVERSION_NARROWFP8_H
