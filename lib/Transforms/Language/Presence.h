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

/// The argument is passed at every launch: it is not optional any more.
void bindAsPresent(KernelOp kernel, unsigned index);

/// The argument is omitted at every launch: its loads give what they give then,
/// its stores are erased, and nothing uses it. Any other use is an error with a
/// location.
mlir::LogicalResult bindAsAbsent(KernelOp kernel, unsigned index);

/// Erases what is no longer needed, so that names that only it had are gone.
void eraseDead(KernelOp kernel);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LANGUAGE_PRESENCE_H
