//===- LowerBody.h - lowers a kernel's body to LLVM -------------*- C++ -*-===//
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

/// Moves the body of `kernel` into `function` and lowers it; the kernel's body
/// is consumed. `values` has one value of type getParamType for each of
/// `params`. These values replace sizes, strides and scalars. Accesses become
/// pointer arithmetic, loads and stores. Loads from the tensors in `streamed`
/// tell the caches not to keep the rows.
mlir::LogicalResult lowerBody(KernelOp kernel, mlir::LLVM::LLVMFuncOp function,
                              llvm::ArrayRef<ParamAttr> params,
                              mlir::ValueRange values, unsigned addressSpace,
                              const llvm::DenseSet<mlir::Value> &streamed = {});

} // namespace mlafix

#endif // MLAFIX_CONVERSION_LOWERBODY_H
