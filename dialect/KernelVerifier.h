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

/// Emits an error of `kernel` that begins with the name of argument `index`.
mlir::InFlightDiagnostic failAt(KernelOp kernel, unsigned index);

// Each function below emits an error if its check fails.

/// Checks the limits of units (mlafix/UnitLimits.h) for the kernel's name, and
/// for the number, names, ranks and strides of its arguments.
llvm::LogicalResult verifyLimits(KernelOp kernel);

/// Checks the limits of units for the number of grid extents, and for the names
/// that can be bound.
llvm::LogicalResult verifyGridLimits(KernelOp kernel);

/// Checks the types, attributes and names of the arguments.
llvm::LogicalResult verifyArguments(KernelOp kernel);

/// Checks that a kernel has at most one exchange, directly in the grid's body.
/// Checks that peers' tensors have the access "update" with an exchange and
/// "read" without one. Stores to peers' tensors must be before the exchange.
/// Loads of peers' tensors, and all other stores, must be after the exchange.
llvm::LogicalResult verifyExchange(KernelOp kernel);

/// Checks that each name stands for one kind of thing: a dim, a dtype, a base
/// or an optional argument. Checks that only upper-case dims, dtypes and bases
/// have defaults, and that these defaults are valid.
llvm::LogicalResult verifyNames(KernelOp kernel);

/// Checks that guards and geometry refer to arguments that exist, and to dims
/// that these arguments have.
llvm::LogicalResult verifyLaunch(KernelOp kernel);

} // namespace mlafix

#endif // MLAFIX_DIALECT_KERNELVERIFIER_H
