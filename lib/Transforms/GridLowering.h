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

/// Checks the preconditions of passes that replace the grid: a plan and a
/// target (from mlafix-plan-kernel), and no states in the body.
llvm::LogicalResult verifyPlanned(KernelOp kernel);

/// Moves the ops of a grid's region, except the terminator, to the insertion
/// point, with `indices` as its arguments.
void inlineRow(mlir::OpBuilder &b, mlir::Block &row, mlir::ValueRange indices);

/// Builds a loop over first, first + step, … < `extent`.
void buildLoop(mlir::OpBuilder &b, mlir::Location loc, mlir::Value first,
               mlir::Value extent, mlir::Value step,
               llvm::function_ref<void(mlir::Value)> body);

/// The start of segment `segment` of a ragged grid, which is the end of the
/// previous one: an entry of cu_seqlens as an index.
mlir::Value loadBoundary(mlir::OpBuilder &b, RaggedForallOp grid,
                         mlir::Value segment);
/// `selected`, or false if the segment is malformed: 0 <= start <= end <= rows
/// must hold.
mlir::Value selectWellFormed(mlir::OpBuilder &b, RaggedForallOp grid,
                             mlir::Value selected, mlir::Value start,
                             mlir::Value end);

/// An extent, or a list of extents, in the form of units (docs/UnitFormat.md).
ExtentAttr describeExtent(mlir::Value extent);
llvm::SmallVector<ExtentAttr> describeExtents(mlir::ValueRange extents);

/// Appends an argument that the launch supplies, not the caller.
mlir::Value addArgument(KernelOp kernel, llvm::StringRef name, mlir::Type type);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GRIDLOWERING_H
