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

/// Returns an op of `kernel` that does more than move elements of the dtype
/// variable, or null if they are only loaded, selected and stored to elements
/// of the same variable, and 0 is the only constant stored among them. In the
/// latter case their bits may be those of any dtype.
mlir::Operation *findUseAsNumber(KernelOp kernel, llvm::StringRef variable);

/// Turns float elements that are only moved into integers (i64), so that every
/// dtype bound to the variable keeps its bits: fp8 conversions saturate, and
/// have a single NaN.
void moveAsBits(KernelOp kernel, llvm::StringRef variable);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LANGUAGE_OPAQUEELEMENTS_H
