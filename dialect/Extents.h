//===- Extents.h - what a launch knows before a kernel runs -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIALECT_EXTENTS_H
#define MLAFIX_DIALECT_EXTENTS_H

#include "mlir/IR/Value.h"

namespace mlafix {

/// Returns true if a launch can compute `index` without running the kernel. It
/// can compute constants, integer arguments (also cast to index, but not
/// booleans), and sizes of tensors that every call passes. Grid extents must be
/// such values.
bool isKnownAtLaunch(mlir::Value index);

/// Returns true if `index` becomes a constant when the kernel's names are
/// bound. It is then arithmetic on constants and on sizes that binding fixes.
/// Before that, a grid extent may be such a value.
bool isKnownOnceBound(mlir::Value index);

} // namespace mlafix

#endif // MLAFIX_DIALECT_EXTENTS_H
