//===- Speculation.h - arithmetic that may run ahead of a wait --*- C++ -*-===//
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

/// The ops after `wait` that `value` depends on, producers first, given the
/// values in `starts`. Returns false if one of them is not pure arithmetic.
bool collectSlice(mlir::Value value, mlir::Operation *wait,
                  const mlir::IRMapping &starts,
                  llvm::SetVector<mlir::Operation *> &slice);

/// True if `value` is known before `wait`, or can be moved there: the ops after
/// `wait` that it depends on are all pure arithmetic.
bool isKnownBefore(mlir::Value value, mlir::Operation *wait);

/// Moves `value`, and the ops it depends on, before `wait`, if isKnownBefore().
bool moveBeforeWait(mlir::Value value, mlir::Operation *wait);

/// True if both values are the same computation, without memory reads.
bool isAlike(mlir::Value x, mlir::Value y);

/// True if `pointer` is to an argument's memory (and not to the thread's
/// stack).
bool isGlobal(mlir::Value pointer);

/// The conjunction; `x` may be null (true). `y` may be poison where `x` is
/// false.
mlir::Value bothHold(mlir::OpBuilder &b, mlir::Value x, mlir::Value y);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_SPECULATION_H
