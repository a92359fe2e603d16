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

/// True if a launch can compute `index` without running the kernel: a constant,
/// an integer argument (cast to index or not; a boolean is none), or a dim of a
/// tensor that is always given. What extents of grids have to be.
bool isKnownAtLaunch(mlir::Value index);

} // namespace mlafix

#endif // MLAFIX_DIALECT_EXTENTS_H
