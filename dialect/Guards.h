//===- Guards.h - what the guards of a code version promise -----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// `guards` is that of a KernelOp, null where it has none. Arguments are named
// by their index.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIALECT_GUARDS_H
#define MLAFIX_DIALECT_GUARDS_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// The argument whose strides are those of `arg`: the first of its guard, or
/// `arg` itself.
int64_t getStrideOwner(mlir::ArrayAttr guards, int64_t arg);
/// True if two arguments are not the same tensor.
bool areGuardedDistinct(mlir::ArrayAttr guards, int64_t a, int64_t b);
/// The alignment in bytes of the rows of argument `arg`; 0 if no guard says.
int64_t getGuardedAlignment(mlir::ArrayAttr guards, int64_t arg);
/// True if argument `arg` is one of some that together hold more than the last
/// cache does.
bool isGuardedBeyondCache(mlir::ArrayAttr guards, int64_t arg);
/// True if dim `dim` of argument `arg` has no gaps: its stride is the size of
/// the next dim times the stride of that.
bool isGuardedPacked(mlir::ArrayAttr guards, int64_t arg, int64_t dim);
/// What the sizes along dim `dim` are a multiple of; 1 if no guard says.
int64_t getGuardedMultiple(KernelOp kernel, llvm::StringRef dim);
/// True if a stride of `memref`, an argument's or a thread's own memory, is
/// neither known nor said by a guard.
bool hasUnknownStride(KernelOp kernel, mlir::Value memref);
/// True if the number of rows is bounded, so that a row index fits 32 bits.
bool hasRowBound(mlir::ArrayAttr guards);

} // namespace mlafix

#endif // MLAFIX_DIALECT_GUARDS_H
