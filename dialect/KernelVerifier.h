//===- KernelVerifier.h - parts of a kernel's verifier ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIALECT_KERNELVERIFIER_H
#define MLAFIX_DIALECT_KERNELVERIFIER_H

#include "dialect/Mlafix.h"

namespace mlafix {

// Each of these emits an error on failure.

/// Checks the limits of units (mlafix/UnitLimits.h): the kernel's name, the
/// number, names, ranks and strides of its arguments.
llvm::LogicalResult verifyLimits(KernelOp kernel);

/// Checks the limits that concern the body: grid extents and bindable names.
llvm::LogicalResult verifyGridLimits(KernelOp kernel);

/// Checks types, attributes and names of the arguments.
llvm::LogicalResult verifyArguments(KernelOp kernel);

/// Checks peers' tensors: stored to only before the exchange, read only after
/// it.
llvm::LogicalResult verifyExchange(KernelOp kernel);

/// Checks special storage of a tensor argument: two elements per byte, or
/// tiles.
llvm::LogicalResult verifyStorage(KernelOp kernel, unsigned index,
                                  mlir::MemRefType type);

/// Checks that every name has one meaning (dim, dtype, base or optional
/// argument), and that defaults belong to dims, dtypes or bases.
llvm::LogicalResult verifyNames(KernelOp kernel);

/// Checks that guards and geometry refer to existing arguments.
llvm::LogicalResult verifyLaunch(KernelOp kernel);

} // namespace mlafix

#endif // MLAFIX_DIALECT_KERNELVERIFIER_H
