//===- Guards.h - what the guards of a code version ensure ------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Functions that tell what the guards of a kernel ensure. `guards` is the
// attribute `guards` of the KernelOp, or null if the op has none. Arguments of
// the kernel are given by index.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIALECT_GUARDS_H
#define MLAFIX_DIALECT_GUARDS_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// Returns the first argument of the guard that ensures that some arguments,
/// `arg` among them, have equal strides. Returns `arg` if there is no such
/// guard.
int64_t getStrideOwner(mlir::ArrayAttr guards, int64_t arg);
/// Returns true if a guard ensures that two arguments are not the same tensor.
bool areGuardedDistinct(mlir::ArrayAttr guards, int64_t a, int64_t b);
/// Returns the alignment in bytes that a guard ensures for the rows of argument
/// `arg`. Returns 0 if there is no such guard.
int64_t getGuardedAlignment(mlir::ArrayAttr guards, int64_t arg);
/// Returns true if a guard ensures that some tensors, `arg` among them,
/// together have more bytes than half of the last-level cache.
bool isGuardedBeyondCache(mlir::ArrayAttr guards, int64_t arg);
/// Returns true if a guard ensures that dim `dim` of argument `arg` is packed:
/// its stride is the size of the next dim times the stride of the next dim.
bool isGuardedPacked(mlir::ArrayAttr guards, int64_t arg, int64_t dim);
/// Returns a number that a guard ensures to divide the sizes of the dims called
/// `dim`. Returns 1 if there is no such guard.
int64_t getGuardedMultiple(KernelOp kernel, llvm::StringRef dim);
/// Returns true if some stride of `memref` is neither static nor that of a dim
/// that a guard ensures to be packed. `memref` is an argument or thread-local
/// memory.
bool hasUnknownStride(KernelOp kernel, mlir::Value memref);
/// Returns the most rows that a guard admits, so that their numbers fit 32
/// bits. Returns nullopt if there is no such guard.
std::optional<int64_t> getRowBound(mlir::ArrayAttr guards);

} // namespace mlafix

#endif // MLAFIX_DIALECT_GUARDS_H
