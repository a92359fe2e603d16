//===- DistributeLoops.h - rows that are walked in loops --------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_DISTRIBUTELOOPS_H
#define MLAFIX_TRANSFORMS_DISTRIBUTELOOPS_H

#include "lib/Transforms/Distribute.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlafix {

/// Whether `op` takes or gives a row.
bool isTileOp(mlir::Operation *op);

/// Ops that cost nothing to do again wherever they are needed.
bool isUniform(mlir::Operation *op);

/// A buffer on the stack, for as long as the kernel runs.
mlir::Value allocBuffer(KernelOp kernel, mlir::Type element, int64_t count);

/// Likewise for what a lane holds of a row tile.
mlir::Value allocRow(KernelOp kernel, mlir::Type tile);

/// Keeps the rows that pass through scf.for and scf.if, and those that a nested
/// block uses, in buffers: every row is then used in the block that makes it.
void bufferRows(KernelOp kernel);

/// Puts a copy of `loop`, over the packs of a row, before it for the rows that
/// are there: what conditions decide for every pack alike is decided once.
void unswitchLoop(mlir::scf::ForOp loop);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_DISTRIBUTELOOPS_H
