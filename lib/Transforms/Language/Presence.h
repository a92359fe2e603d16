//===- Presence.h - optional arguments --------------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Optional arguments that are open, and what mlafix-specialize does to a kernel
// when one is bound: the body then does unconditionally what it would do at
// every launch.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LANGUAGE_PRESENCE_H
#define MLAFIX_TRANSFORMS_LANGUAGE_PRESENCE_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// Makes the argument mandatory: every launch passes it.
void bindAsPresent(KernelOp kernel, unsigned index);

/// Removes uses of an argument that every launch omits: loads get the values
/// that they have in that case, stores are erased. Any other use is an error at
/// its location.
mlir::LogicalResult bindAsAbsent(KernelOp kernel, unsigned index);

/// Erases dead ops, so that names used only by them disappear.
void eraseDead(KernelOp kernel);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LANGUAGE_PRESENCE_H
