//===- Thread.h - a thread of a block and its row ---------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GRID_THREAD_H
#define MLAFIX_TRANSFORMS_GRID_THREAD_H

#include "dialect/Guards.h"
#include "dialect/MlafixThread.h"
#include "mlir/IR/Builders.h"

namespace mlafix {

/// The position of a thread in the grid.
struct Thread {
  mlir::Value id; ///< number of the thread in its block, i32
  /// The number of the group of blocks that share the row, i32. Null if each
  /// row is in one block.
  mlir::Value place;
  mlir::Value group; ///< number of the thread's row within the block, i32
  mlir::Value lane;  ///< lane within the row, index; null if rows have one lane
  /// The mask of the row's lanes in their warp, i32. Null if the lanes never
  /// synchronise.
  mlir::Value mask;
};
/// Builds the position of this thread. `parts` (i32) is the number of parts of
/// each row; null unless rows are in parts.
Thread buildThread(mlir::OpBuilder &b, mlir::Location loc, LayoutAttr layout,
                   mlir::Value parts = {});

/// Checks that the layout of `kernel`, which is for a GPU, has a power of two
/// of lanes. Other numbers are allowed if the lanes of a row do not synchronise
/// or exchange values.
llvm::LogicalResult verifyLanes(KernelOp kernel);

/// Numbers the rows of a dense grid. Row numbers are i32 if guards bound the
/// number of rows, else index.
class GridRows {
public:
  GridRows(mlir::OpBuilder &b, KernelOp kernel, ForallOp forall)
      : b(b), forall(forall),
        isNarrow(getRowBound(kernel.getGuardsAttr()).has_value()) {}

  /// Converts an i32 to the type of row numbers.
  mlir::Value number(mlir::Value i32);
  mlir::Value constant(int64_t value);
  /// Converts a row number to an index.
  mlir::Value index(mlir::Value number);
  /// Returns the number of rows.
  mlir::Value count();
  /// Returns the grid's indices of row `row`. The caller must call count()
  /// first. Where the i1 `isBundled` is true (null: always false), `bundle`
  /// consecutive rows differ only in the first index. Rows past the last whole
  /// bundle of that index keep their order.
  llvm::SmallVector<mlir::Value>
  indicesOf(mlir::Value row, mlir::Value isBundled = {}, int64_t bundle = 1);

private:
  mlir::Value buildReciprocal(unsigned extent);
  llvm::SmallVector<mlir::Value> delinearize(mlir::Value row);
  llvm::SmallVector<mlir::Value>
  bundledIndicesOf(mlir::Value row, mlir::Value isBundled, int64_t bundle);

  mlir::OpBuilder &b;
  ForallOp forall;
  bool isNarrow;
  llvm::SmallVector<mlir::Value> extents;
};

/// Builds a wait for the preceding grid and then a trigger of the next grid, on
/// targets with dependent launch. Every thread must execute this code before
/// its first memory access and before it ends. A grid that ended without
/// waiting could complete before its predecessor.
void buildDependency(mlir::OpBuilder &b, mlir::Location loc, KernelOp kernel);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GRID_THREAD_H
