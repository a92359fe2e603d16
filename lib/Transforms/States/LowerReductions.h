//===- LowerReductions.h - reductions of numbers to numbers -----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_STATES_LOWERREDUCTIONS_H
#define MLAFIX_TRANSFORMS_STATES_LOWERREDUCTIONS_H

#include "dialect/Mlafix.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlafix {

/// True if `op` reduces numbers rather than booleans.
bool reducesNumbers(ReduceOp op);

/// Lowers mlafix.arg_reduce, mlafix.top_k and boolean reductions to reductions
/// of numbers. mlafix.top_k reduces value and index separately in rows of up to
/// `mostByIndex` elements, else by one key. In rows of `leastByLane` to
/// `mostByLane` elements (half if loaded from 16 bits or fewer; for bf16 up to
/// `mostSeparate`, since a branch widens it again), only lanes that hold the
/// extreme search for its index. `isOnGPU`: additions yield the same NaN for
/// all NaN operands.
void populateLowerReductionPatterns(mlir::RewritePatternSet &patterns,
                                    const mlir::TypeConverter &converter,
                                    int64_t mostByIndex, int64_t leastByLane,
                                    int64_t mostByLane, int64_t mostSeparate,
                                    bool isOnGPU);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_STATES_LOWERREDUCTIONS_H
