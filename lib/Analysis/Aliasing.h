//===- Aliasing.h - arguments that may be the same tensor -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_ANALYSIS_ALIASING_H
#define MLAFIX_ANALYSIS_ALIASING_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// True if a launch may pass the same tensor for `written` and `read` (N11 in
/// docs/Dialect.md): they have the same shape and type, the kernel only reads
/// `read`, and the accesses show that each row uses only its own elements of
/// both arguments, and reads no element of `read` after it has written one of
/// `written`. The kernel need not access both.
bool mayBeOneTensor(KernelOp kernel, unsigned written, unsigned read);

/// True if `aliases`, the pairs in a kernel's signature, contains (a, b) or (b,
/// a).
bool isAliasPair(mlir::ArrayAttr aliases, int64_t a, int64_t b);

} // namespace mlafix

#endif // MLAFIX_ANALYSIS_ALIASING_H
