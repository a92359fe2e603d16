//===- ExpandMath.h - math and conversions without a library -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_CONVERSION_MLAFIXTOCPU_EXPANDMATH_H
#define MLAFIX_CONVERSION_MLAFIXTOCPU_EXPANDMATH_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlafix {

/// Writes out what would otherwise become a call: exp, exp2, log, log2 and
/// rsqrt of f32, and conversions from and to bf16. For the x86-64 baseline,
/// which has neither F16C nor FMA, also conversions from and to f16, fma, floor
/// and ceil. Any other math is an error at its location.
llvm::LogicalResult expandMath(mlir::LLVM::LLVMFuncOp function,
                               bool isBaseline);

} // namespace mlafix

#endif // MLAFIX_CONVERSION_MLAFIXTOCPU_EXPANDMATH_H
