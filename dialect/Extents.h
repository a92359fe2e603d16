//===- Extents.h - extents of a grid known at launch ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIALECT_EXTENTS_H
#define MLAFIX_DIALECT_EXTENTS_H

#include "mlir/IR/Value.h"

namespace mlafix {

/// Returns true if a launch knows `index` without running the kernel: a
/// constant, an integer argument (also one that is cast to index, but no
/// boolean), or a size of a tensor that every call passes. Once the kernel's
/// names are bound, grid extents must be such values.
bool isKnownAtLaunch(mlir::Value index);

/// Returns true if `index` becomes a constant when the kernel's names are
/// bound, because it is arithmetic on constants and on sizes that binding
/// fixes. Until the names are bound, a grid extent may also be such a value.
bool isKnownOnceBound(mlir::Value index);

} // namespace mlafix

#endif // MLAFIX_DIALECT_EXTENTS_H
