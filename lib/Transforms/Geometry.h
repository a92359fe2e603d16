//===- Geometry.h - what a launch has to know of a kernel -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GEOMETRY_H
#define MLAFIX_TRANSFORMS_GEOMETRY_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// An extent, or a list of them, as units spell it (docs/UnitFormat.md).
ExtentAttr describeExtent(mlir::Value extent);
llvm::SmallVector<ExtentAttr> describeExtents(mlir::ValueRange extents);

/// Appends an argument of the launch's own, which a call does not have.
mlir::Value addArgument(KernelOp kernel, llvm::StringRef name, mlir::Type type);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GEOMETRY_H
