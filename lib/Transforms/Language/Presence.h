//===- Presence.h - optional arguments --------------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// mlafix-specialize calls these functions when an optional argument is bound to
// present or absent. The body then no longer tests if the argument is present.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LANGUAGE_PRESENCE_H
#define MLAFIX_TRANSFORMS_LANGUAGE_PRESENCE_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// Makes the argument at position `index` mandatory, so that every launch
/// passes it.
void bindAsPresent(KernelOp kernel, unsigned index);

/// Removes the uses of an argument that every launch omits. Loads are replaced
/// by the value that they have in this case, and stores are erased. Any other
/// use is an error at its location.
mlir::LogicalResult bindAsAbsent(KernelOp kernel, unsigned index);

/// Erases dead ops, so that names that only they use disappear.
void eraseDead(KernelOp kernel);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LANGUAGE_PRESENCE_H
