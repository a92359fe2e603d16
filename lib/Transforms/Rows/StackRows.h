//===- StackRows.h - stack buffers for rows ---------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_ROWS_STACKROWS_H
#define MLAFIX_TRANSFORMS_ROWS_STACKROWS_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// Allocates a stack buffer of `count` elements that lives as long as the
/// kernel.
mlir::Value allocBuffer(KernelOp kernel, mlir::Type element, int64_t count);

/// Allocates a stack buffer for a lane's packs of `row`, a row tile.
mlir::Value allocRow(KernelOp kernel, mlir::Value row);

/// Checks that the buffers of `kernel` fit the stack of a thread. If they do
/// not, reports an error at the largest buffer.
llvm::LogicalResult verifyBuffers(KernelOp kernel);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ROWS_STACKROWS_H
