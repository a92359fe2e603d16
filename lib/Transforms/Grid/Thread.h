//===- Thread.h - a thread of a block and its row ---------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GRID_THREAD_H
#define MLAFIX_TRANSFORMS_GRID_THREAD_H

#include "dialect/Guards.h"
#include "dialect/RowProgram.h"
#include "mlir/IR/Builders.h"

namespace mlafix {

/// A thread's position.
struct Thread {
  mlir::Value id;    ///< in its block, i32
  mlir::Value place; ///< of the blocks that share its row, i32; null if one
                     ///< block has it
  mlir::Value group; ///< number of its row within the block, i32
  mlir::Value lane;  ///< lane within the row, index; null if there is one
                     ///< lane
  mlir::Value mask;  ///< the row's lanes within their warp, i32; null if they
                     ///< never synchronise
};
/// Builds this thread's coordinates. `parts`: the parts of each row, i32; null
/// unless rows are in parts.
Thread buildThread(mlir::OpBuilder &b, mlir::Location loc, LayoutAttr layout,
                   mlir::Value parts = {});

/// Checks that `kernel`, for a GPU, has a power of two of lanes if these
/// synchronise or exchange values.
llvm::LogicalResult verifyLanes(KernelOp kernel);

/// Numbers the rows of a dense grid: in i32 if guards bound their count, else
/// in index.
class GridRows {
public:
  GridRows(mlir::OpBuilder &b, KernelOp kernel, ForallOp forall)
      : b(b), forall(forall), isNarrow(hasRowBound(kernel.getGuardsAttr())) {}

  /// Converts an i32 to the type of row numbers.
  mlir::Value number(mlir::Value i32);
  mlir::Value constant(int64_t value);
  /// Converts a row number to an index.
  mlir::Value index(mlir::Value number);
  /// The number of rows.
  mlir::Value count();
  /// The grid's indices of row `row`; call count() first. Where `isBundled`
  /// (i1; null: false) holds, `bundle` consecutive rows differ only in the
  /// first index, as far as that index has whole bundles.
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

/// Creates an empty row program for the lane of `thread`.
RowOp buildRow(mlir::OpBuilder &b, mlir::Location loc, const Thread &thread);

/// On targets with dependent launch: waits for the preceding grid, then
/// triggers the next one. Every thread must execute it before its first memory
/// access and before it may end: a grid that ends without waiting may complete
/// before its predecessor.
void buildDependency(mlir::OpBuilder &b, mlir::Location loc, KernelOp kernel);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GRID_THREAD_H
