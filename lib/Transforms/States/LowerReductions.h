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

/// True if `op` reduces numbers, not booleans.
bool reducesNumbers(ReduceOp op);

/// mlafix.arg_reduce, mlafix.top_k and reductions of booleans become reductions
/// of numbers to numbers. Of rows of up to `mostByIndex` elements, mlafix.top_k
/// finds an element's index after the element, else both by one key. Of rows of
/// `leastByLane` to `mostByLane` elements, half as many where they are loaded
/// from 16 bits or fewer, lanes that have the extreme alone look for its index;
/// of bf16 in rows of up to `mostSeparate`, since a branch widens it again.
/// On a GPU (`isOnGPU`) an addition makes one NaN of all.
void populateLowerReductionPatterns(mlir::RewritePatternSet &patterns,
                                    const mlir::TypeConverter &converter,
                                    int64_t mostByIndex, int64_t leastByLane,
                                    int64_t mostByLane, int64_t mostSeparate,
                                    bool isOnGPU);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_STATES_LOWERREDUCTIONS_H
