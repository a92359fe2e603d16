//===- StoredFloats.h - floats that only memory holds -----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_CONVERSION_STOREDFLOATS_H
#define MLAFIX_CONVERSION_STOREDFLOATS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlafix {

/// Writes every conversion from or to a float of less than 32 bits as one from
/// or to f32, which is what the kernel said before folds made one conversion of
/// two: a value that went through f32 is rounded there (N7), and targets have
/// instructions, or mlafix expansions, for these alone.
void splitConversions(mlir::LLVM::LLVMFuncOp function);

/// Replaces every value of a type for which `isStored` holds by its bits, an
/// integer: what a target moves without being able to compute with it. Of its
/// conversions, those that are left see the float, and nothing else does.
/// Arithmetic on it is an error at its location.
mlir::LogicalResult
replaceFloatsByBits(mlir::LLVM::LLVMFuncOp function,
                    llvm::function_ref<bool(mlir::FloatType)> isStored);

} // namespace mlafix

#endif // MLAFIX_CONVERSION_STOREDFLOATS_H
