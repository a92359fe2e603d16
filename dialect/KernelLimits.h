//===- KernelLimits.h - what a unit can hold of a kernel --------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIALECT_KERNELLIMITS_H
#define MLAFIX_DIALECT_KERNELLIMITS_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// Whether a unit could hold the kernel: its name, the number of its arguments,
/// their names, ranks and strides are within the limits
/// (mlafix/UnitLimits.h). Else emits an error.
llvm::LogicalResult verifyLimits(KernelOp kernel);

/// The same of what its body decides: the extents of its grid and the names
/// that may be bound.
llvm::LogicalResult verifyGridLimits(KernelOp kernel);

} // namespace mlafix

#endif // MLAFIX_DIALECT_KERNELLIMITS_H
