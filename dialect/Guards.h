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

/// The argument that has the same strides as `arg`: the first of its guard, or
/// `arg`.
int64_t getStrideOwner(mlir::ArrayAttr guards, int64_t arg);
/// True if the guards exclude that two arguments are the same tensor.
bool areGuardedDistinct(mlir::ArrayAttr guards, int64_t a, int64_t b);
/// The alignment in bytes to which rows of argument `arg` are guarded. 0
/// without such a guard.
int64_t getGuardedAlignment(mlir::ArrayAttr guards, int64_t arg);
/// True if argument `arg` belongs to a set that is guarded to exceed the
/// last-level cache.
bool isGuardedBeyondCache(mlir::ArrayAttr guards, int64_t arg);
/// True if dim `dim` of argument `arg` is guarded to be packed: its stride is
/// the next dim's size times the next dim's stride.
bool isGuardedPacked(mlir::ArrayAttr guards, int64_t arg, int64_t dim);
/// A guarded divisor of the sizes along dim `dim`; 1 if unguarded.
int64_t getGuardedMultiple(KernelOp kernel, llvm::StringRef dim);
/// True if a stride of `memref` (an argument, or thread-local memory) is
/// neither static nor guarded.
bool hasUnknownStride(KernelOp kernel, mlir::Value memref);
/// True if the number of rows is guarded to fit 32 bits.
bool hasRowBound(mlir::ArrayAttr guards);

} // namespace mlafix

#endif // MLAFIX_DIALECT_GUARDS_H
