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

/// True if a launch can compute `index` without executing the kernel: a
/// constant, an integer argument (possibly cast to index; not a boolean), or a
/// dim of a tensor that every call passes. Grid extents must be such values.
bool isKnownAtLaunch(mlir::Value index);

/// True if `index` is arithmetic on constants and on sizes that are constants
/// once the kernel's names are bound. A grid extent may be such a value until
/// then.
bool isKnownOnceBound(mlir::Value index);

} // namespace mlafix

#endif // MLAFIX_DIALECT_EXTENTS_H
