//===- GridLowering.h - replacing the grid of a kernel ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GRIDLOWERING_H
#define MLAFIX_TRANSFORMS_GRIDLOWERING_H

#include "dialect/Mlafix.h"
#include "mlir/IR/Builders.h"

namespace mlafix {

/// Checks what every pass that replaces a grid needs: a layout and a target,
/// which mlafix-plan-layout writes, and a body without states.
llvm::LogicalResult verifyPlanned(KernelOp kernel);

/// Moves the ops of a grid's region, but for its terminator, to the insertion
/// point, with `indices` for its arguments.
void inlineRow(mlir::OpBuilder &b, mlir::Block &row, mlir::ValueRange indices);

/// A loop over first, first + step, … below `extent`.
void buildLoop(mlir::OpBuilder &b, mlir::Location loc, mlir::Value first,
               mlir::Value extent, mlir::Value step,
               llvm::function_ref<void(mlir::Value)> body);

/// Where segment `segment` of a ragged grid begins, and the one before it ends:
/// an element of cu_seqlens, as an index.
mlir::Value loadBoundary(mlir::OpBuilder &b, RaggedForallOp grid,
                         mlir::Value segment);
/// `selected`, unless a segment is malformed: 0 <= start <= end <= the grid's
/// rows.
mlir::Value selectWellFormed(mlir::OpBuilder &b, RaggedForallOp grid,
                             mlir::Value selected, mlir::Value start,
                             mlir::Value end);

/// An extent, or a list of them, as units spell it (docs/UnitFormat.md).
ExtentAttr describeExtent(mlir::Value extent);
llvm::SmallVector<ExtentAttr> describeExtents(mlir::ValueRange extents);

/// Appends an argument of the launch's own, which a call does not have.
mlir::Value addArgument(KernelOp kernel, llvm::StringRef name, mlir::Type type);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GRIDLOWERING_H
