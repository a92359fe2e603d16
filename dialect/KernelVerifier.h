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

// Each function below emits an error if its check fails.

/// Checks the limits of units (mlafix/UnitLimits.h) for the kernel's name, and
/// for the number, names, ranks and strides of its arguments.
llvm::LogicalResult verifyLimits(KernelOp kernel);

/// Checks the limits of units for grid extents and names that can be bound.
llvm::LogicalResult verifyGridLimits(KernelOp kernel);

/// Checks the types, attributes and names of the arguments.
llvm::LogicalResult verifyArguments(KernelOp kernel);

/// Checks that a kernel has at most one exchange. Peers' tensors may only be
/// stored to before the exchange, and only be read after it.
llvm::LogicalResult verifyExchange(KernelOp kernel);

/// Checks that a tensor argument may have its special storage: two elements per
/// byte, or tiles.
llvm::LogicalResult verifyStorage(KernelOp kernel, unsigned index,
                                  mlir::MemRefType type);

/// Checks that each name stands for one kind of thing: a dim, a dtype, a base
/// or an optional argument. Checks that only dims, dtypes and bases have
/// defaults.
llvm::LogicalResult verifyNames(KernelOp kernel);

/// Checks that guards and geometry refer to arguments that exist.
llvm::LogicalResult verifyLaunch(KernelOp kernel);

} // namespace mlafix

#endif // MLAFIX_DIALECT_KERNELVERIFIER_H
