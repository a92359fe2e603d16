//===- StackRows.h - what a thread keeps of rows on its stack ---*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_ROWS_STACKROWS_H
#define MLAFIX_TRANSFORMS_ROWS_STACKROWS_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// A buffer on the stack, for as long as the kernel runs.
mlir::Value allocBuffer(KernelOp kernel, mlir::Type element, int64_t count);

/// Likewise for what a lane holds of `row`, a row tile.
mlir::Value allocRow(KernelOp kernel, mlir::Value row);

/// Checks that the buffers of `kernel` fit the stack that a thread has for
/// them; the error is at the largest row in one.
llvm::LogicalResult verifyBuffers(KernelOp kernel);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ROWS_STACKROWS_H
