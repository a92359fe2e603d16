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

// Each emits an error where it fails.

/// True if a unit could hold the kernel: its name, the number of its arguments,
/// their names, ranks and strides are within the limits
///(mlafix/UnitLimits.h).
llvm::LogicalResult verifyLimits(KernelOp kernel);

/// The same of what its body decides: the extents of its grid and the names
/// that may be bound.
llvm::LogicalResult verifyGridLimits(KernelOp kernel);

/// Types, attributes and names of the arguments.
llvm::LogicalResult verifyArguments(KernelOp kernel);

/// Tensors of all ranks that are stored to: before the exchange, and read
/// behind it.
llvm::LogicalResult verifyExchange(KernelOp kernel);

/// Where elements of a tensor argument lie: two in a byte, or rows and columns
/// in tiles.
llvm::LogicalResult verifyStorage(KernelOp kernel, unsigned index,
                                  mlir::MemRefType type);

/// A name is a dim, a dtype, a base or an optional argument, and its default
/// one of the first three's.
llvm::LogicalResult verifyNames(KernelOp kernel);

/// Guards and geometry are about arguments that the kernel has.
llvm::LogicalResult verifyLaunch(KernelOp kernel);

} // namespace mlafix

#endif // MLAFIX_DIALECT_KERNELVERIFIER_H
