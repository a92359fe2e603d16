//===- Speculation.h - arithmetic that may precede a wait -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_SPECULATION_H
#define MLAFIX_TRANSFORMS_SPECULATION_H

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace mlafix {

/// Collects the ops after `wait` that `value` depends on, producers first.
/// Values in `starts` count as known, so the ops that compute them are left
/// out. Returns false if one of the ops is not pure arithmetic.
bool collectSlice(mlir::Value value, mlir::Operation *wait,
                  const mlir::IRMapping &starts,
                  llvm::SetVector<mlir::Operation *> &slice);

/// Returns true if `value` is known before `wait` or can be computed there: all
/// ops after `wait` that it depends on are pure arithmetic.
bool isKnownBefore(mlir::Value value, mlir::Operation *wait);

/// Moves `value`, and the ops it depends on, before `wait`. Returns false and
/// moves nothing if isKnownBefore() is false.
bool moveBeforeWait(mlir::Value value, mlir::Operation *wait);

/// Returns true if both values are results of the same pure computation on the
/// same operands.
bool isAlike(mlir::Value x, mlir::Value y);

/// Returns true if `pointer` points to global memory, where the kernel's
/// arguments are, and not to the stack of the thread.
bool isGlobal(mlir::Value pointer);

/// Builds the conjunction of two i1. `x` may be null, which stands for true.
/// `y` may be poison where `x` is false.
mlir::Value bothHold(mlir::OpBuilder &b, mlir::Value x, mlir::Value y);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_SPECULATION_H
