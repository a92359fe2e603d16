//===- GridLowering.h - helpers to replace the grid of a kernel -*- C++ -*-===//
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

/// Checks the preconditions of passes that replace the grid. The kernel needs a
/// plan and a target (from mlafix-plan-kernel), and no states may be left in
/// the body.
llvm::LogicalResult verifyPlanned(KernelOp kernel);

/// Moves the ops of a grid's region, except the terminator, to the insertion
/// point. `indices` replace the arguments of the region.
void inlineRow(mlir::OpBuilder &b, mlir::Block &row, mlir::ValueRange indices);

/// Builds a loop whose induction variable is first, first + step, … as long as
/// it is below `extent`. `body` builds the loop's body.
void buildLoop(mlir::OpBuilder &b, mlir::Location loc, mlir::Value first,
               mlir::Value extent, mlir::Value step,
               llvm::function_ref<void(mlir::Value)> body);

/// Builds the start of segment `segment` of a ragged grid, which is the end of
/// the previous segment. It is an entry of cu_seqlens, converted to index.
mlir::Value loadBoundary(mlir::OpBuilder &b, RaggedForallOp grid,
                         mlir::Value segment);
/// Builds an i1 that is `selected` if the segment is well-formed, else false. A
/// segment is well-formed if 0 <= start <= end <= rows.
mlir::Value selectWellFormed(mlir::OpBuilder &b, RaggedForallOp grid,
                             mlir::Value selected, mlir::Value start,
                             mlir::Value end);

/// Converts extents to the form that units have (docs/UnitFormat.md).
ExtentAttr describeExtent(mlir::Value extent);
llvm::SmallVector<ExtentAttr> describeExtents(mlir::ValueRange extents);

/// Appends an argument to `kernel` that the launch supplies, not the caller.
/// Returns the argument.
mlir::Value addArgument(KernelOp kernel, llvm::StringRef name, mlir::Type type);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GRIDLOWERING_H
