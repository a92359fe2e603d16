//===- Aliasing.h - which arguments may be one tensor -----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_ALIASING_H
#define MLAFIX_ANALYSIS_ALIASING_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// True if argument `read` may be the same tensor as argument `written` (N11):
/// all accesses of both use the same indices, these indices are distinct for
/// distinct rows, and no read follows a write.
bool mayAlias(KernelOp kernel, unsigned written, unsigned read);

/// True if a launch may pass the same tensor for both arguments: they have the
/// same shape and type, one is only read, and mayAlias() holds.
bool mayBeOneTensor(KernelOp kernel, unsigned written, unsigned read);

/// True if `aliases` (the pairs of a signature) contains `a` and `b` in either
/// order.
bool isAliasPair(mlir::ArrayAttr aliases, int64_t a, int64_t b);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_ALIASING_H
