//===- LowerBody.h - a kernel's body in LLVM -------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_CONVERSION_LOWERBODY_H
#define MLAFIX_CONVERSION_LOWERBODY_H

#include "dialect/Mlafix.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlafix {

/// Builds the function's body from the kernel's. `params` has a value of type
/// getParamType for every parameter. Sizes, strides and scalars are replaced by
/// parameters; accesses become pointer arithmetic, loads and stores. Caches
/// need not keep rows that are loaded from `streamed`. Consumes the kernel's
/// body.
mlir::LogicalResult lowerBody(KernelOp kernel, mlir::LLVM::LLVMFuncOp function,
                              llvm::ArrayRef<ParamAttr> params,
                              mlir::ValueRange values, unsigned addressSpace,
                              const llvm::DenseSet<mlir::Value> &streamed = {});

} // namespace mlafix

#endif // MLAFIX_CONVERSION_LOWERBODY_H
