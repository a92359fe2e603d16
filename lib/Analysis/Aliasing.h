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

/// True if argument `read` may be the tensor that argument `written` is (N11):
/// every access of both has the same indices, these tell every row of the grid
/// from every other, and no read follows a write.
bool mayAlias(KernelOp kernel, unsigned written, unsigned read);

/// True if a launch may pass one tensor for both: two arguments of one shape
/// and type, one of them read only, for which mayAlias() holds.
bool mayBeOneTensor(KernelOp kernel, unsigned written, unsigned read);

/// True if `aliases`, the pairs of a signature, let `a` and `b` be one tensor,
/// in either order.
bool isAliasPair(mlir::ArrayAttr aliases, int64_t a, int64_t b);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_ALIASING_H
