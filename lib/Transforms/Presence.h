//===- Presence.h - optional arguments bound -------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// What mlafix-specialize does to a kernel when an optional argument is bound:
// the body then does, without asking, what it would do at every launch.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_PRESENCE_H
#define MLAFIX_TRANSFORMS_PRESENCE_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// The argument is given at every launch: it is optional no more.
void bindAsPresent(KernelOp kernel, unsigned index);

/// The argument is left out at every launch: its loads give what they give
/// then, its stores are gone, and nothing uses it. An op that is none of these
/// is a located error.
mlir::LogicalResult bindAsAbsent(KernelOp kernel, unsigned index);

/// Erases what is no longer needed, so that names that only it had are gone.
void eraseDead(KernelOp kernel);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_PRESENCE_H
