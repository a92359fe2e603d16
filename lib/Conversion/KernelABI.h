//===- KernelABI.h - a kernel's parameters and memory accesses in LLVM -*- C++
//-*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_CONVERSION_KERNELABI_H
#define MLAFIX_CONVERSION_KERNELABI_H

#include "dialect/Mlafix.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlafix {

/// One parameter of a compiled kernel (docs/UnitFormat.md, `params`).
struct Param {
  enum Kind { Pointer, Size, Stride, Scalar } kind;
  unsigned arg;     ///< of the kernel
  unsigned dim = 0; ///< for Size and Stride
};

/// The parameters that a distributed kernel needs: pointers, sizes and strides
/// that are dynamic and used, scalars that are used. `last` arguments at the
/// end, the range of a CPU kernel, are not among them.
llvm::SmallVector<Param> collectParams(KernelOp kernel, unsigned last);

/// The type a parameter has in LLVM; pointers are in `addressSpace`.
mlir::Type getParamType(KernelOp kernel, const Param &param,
                        unsigned addressSpace);

/// Builds the function's body from the kernel's, given a value of type
/// getParamType for every parameter: sizes, strides and scalars take the place
/// of what they stand for, accesses become pointer arithmetic, loads and
/// stores. The kernel's own body is consumed.
mlir::LogicalResult lowerBody(KernelOp kernel, mlir::LLVM::LLVMFuncOp function,
                              llvm::ArrayRef<Param> params,
                              mlir::ValueRange values, unsigned addressSpace);

/// Checks an op that a target has not written out itself: of `math`, only what
/// becomes instructions and never a library call. An error at its location.
llvm::LogicalResult checkRemainingMath(mlir::Operation *op);

/// The variant's description (docs/UnitFormat.md, `variants`).
mlir::DictionaryAttr describeVariant(KernelOp kernel,
                                     llvm::ArrayRef<Param> params);

} // namespace mlafix

#endif // MLAFIX_CONVERSION_KERNELABI_H
