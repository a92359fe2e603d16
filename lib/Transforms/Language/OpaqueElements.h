//===- OpaqueElements.h - elements that are not computed with ---*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LANGUAGE_OPAQUEELEMENTS_H
#define MLAFIX_TRANSFORMS_LANGUAGE_OPAQUEELEMENTS_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// An op of `kernel` that does more to elements of the dtype variable than to
/// move them: null if they are loaded, chosen from, and stored to elements of
/// the same variable alone, and 0 is the one number stored beside them. Then
/// their bits may be those of any dtype.
mlir::Operation *findUseAsNumber(KernelOp kernel, llvm::StringRef variable);

/// Makes integers (i64) of the elements of a variable of floats that are only
/// moved, so that a dtype it is bound to keeps its bits: conversions of fp8
/// saturate, and have one NaN.
void moveAsBits(KernelOp kernel, llvm::StringRef variable);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LANGUAGE_OPAQUEELEMENTS_H
