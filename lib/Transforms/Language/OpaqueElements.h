//===- OpaqueElements.h - elements that are only moved ----------*- C++ -*-===//
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
/// variable. Returns null if the elements are only loaded, selected, and stored
/// to elements of the same variable, and 0 is the only constant stored. The
/// elements may then have any bits.
mlir::Operation *findUseAsNumber(KernelOp kernel, llvm::StringRef variable);

/// If float elements of the variable are only moved, replaces them by integers
/// (i64). Elements then keep their bits for every dtype that is bound to the
/// variable. Conversions of fp8 would not keep them, since they saturate and
/// have a single NaN.
void moveAsBits(KernelOp kernel, llvm::StringRef variable);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LANGUAGE_OPAQUEELEMENTS_H
