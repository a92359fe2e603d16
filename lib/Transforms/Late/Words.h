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

/// On an arith.extf of bf16 that is widened element by element: ptxas takes
/// what words are widened to for something else, and keeps neither for the
/// other. mlafix-delay-widening writes it, mlafix-widen-words reads it.
constexpr llvm::StringLiteral kSeparateAttr = "mlafix.separate";

/// True if `type` fills words of 32 bits with elements of `bits` bits.
bool fillsWords(mlir::Type type, unsigned bits = 16);

/// The first op of `block` that uses `row`, or has one that does.
mlir::Operation *findFirstUse(mlir::Block *block, mlir::Operation *row);

/// A clone of `row` before `place`, for all uses in that block.
mlir::Operation *cloneBefore(mlir::Operation *place, mlir::Operation *row);

/// `number` in `type`; none if it is another number there, or NaN.
std::optional<llvm::APFloat> convertExactly(llvm::APFloat number,
                                            mlir::FloatType type);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LATE_WORDS_H
