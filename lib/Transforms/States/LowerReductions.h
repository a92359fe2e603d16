//===- LowerReductions.h - lower to reductions of numbers -------*- C++ -*-===//
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

/// Returns true if `op` reduces numbers, and false if it reduces booleans.
bool reducesNumbers(ReduceOp op);

/// Adds patterns that lower mlafix.arg_reduce, mlafix.top_k and boolean
/// reductions to reductions of numbers. Row lengths are in elements.
///
/// mlafix.top_k reduces value and index separately in rows of up to
/// `mostByIndex` elements. In longer rows it reduces keys that contain both.
///
/// In rows of `leastByLane` to `mostByLane` elements, mlafix.arg_reduce lets
/// only lanes that hold the extreme search for the index. The upper limit is
/// half as large if elements are loaded from 16 bits or fewer. For bf16 the
/// upper limit is at least `mostSeparate`, since lanes keep the elements as
/// bf16 and the search widens them again.
///
/// `isOnGPU` means that additions yield the same NaN for all NaN operands.
void populateLowerReductionPatterns(mlir::RewritePatternSet &patterns,
                                    const mlir::TypeConverter &converter,
                                    int64_t mostByIndex, int64_t leastByLane,
                                    int64_t mostByLane, int64_t mostSeparate,
                                    bool isOnGPU);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_STATES_LOWERREDUCTIONS_H
