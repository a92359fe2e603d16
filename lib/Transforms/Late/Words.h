//===- Words.h - rows of elements of 16 bits and less -----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LATE_WORDS_H
#define MLAFIX_TRANSFORMS_LATE_WORDS_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/APFloat.h"

#include <optional>

namespace mlafix {

/// Unit attribute of an arith.extf of bf16 that must be widened element by
/// element: ptxas does not recognise the words after widening as the same
/// value, and keeps both. Written by mlafix-delay-widening, read by
/// mlafix-widen-words.
constexpr llvm::StringLiteral kSeparateAttr = "mlafix.separate";

/// True if vectors of `type` fill 32-bit words with elements of `bits` bits.
bool fillsWords(mlir::Type type, unsigned bits = 16);

/// The first op of `block` that uses `row` or contains a use of it.
mlir::Operation *findFirstUse(mlir::Block *block, mlir::Operation *row);

/// Clones `row` before `place` and replaces its uses in that block.
mlir::Operation *cloneBefore(mlir::Operation *place, mlir::Operation *row);

/// `number` in `type`; nullopt if that changes the number, or for NaN.
std::optional<llvm::APFloat> convertExactly(llvm::APFloat number,
                                            mlir::FloatType type);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LATE_WORDS_H
