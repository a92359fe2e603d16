//===- LowerArgReduce.h - indices of extremes -------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LOWERARGREDUCE_H
#define MLAFIX_TRANSFORMS_LOWERARGREDUCE_H

#include "mlir/IR/PatternMatch.h"

namespace mlir {
class TypeConverter;
} // namespace mlir

namespace mlafix {

/// `mlafix.arg_reduce` becomes reductions: of the row, and of the indices at
/// which the extreme is.
void populateLowerArgReducePatterns(mlir::RewritePatternSet &patterns,
                                    const mlir::TypeConverter &converter);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LOWERARGREDUCE_H
