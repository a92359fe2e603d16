//===- Speculation.h - arithmetic that may run ahead of a wait --*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LATE_SPECULATION_H
#define MLAFIX_TRANSFORMS_LATE_SPECULATION_H

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace mlafix {

/// The ops behind `value` that come after `wait`, producers first, where what
/// `starts` maps is known. False if one of them is not plain arithmetic.
bool collectSlice(mlir::Value value, mlir::Operation *wait,
                  const mlir::IRMapping &starts,
                  llvm::SetVector<mlir::Operation *> &slice);

/// Moves `value` and what it needs ahead of `wait`, if all of that is plain
/// arithmetic.
bool moveBeforeWait(mlir::Value value, mlir::Operation *wait);

/// True if two values are computed alike, without a look at memory.
bool isAlike(mlir::Value x, mlir::Value y);

/// True if `pointer` is one of the arguments' memory: rows may be on a thread's
/// stack, too.
bool isGlobal(mlir::Value pointer);

/// Both, of which the first may be null. Where it is false, the second may be
/// poison.
mlir::Value bothHold(mlir::OpBuilder &b, mlir::Value x, mlir::Value y);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LATE_SPECULATION_H
