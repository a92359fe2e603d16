//===- Thread.h - a thread of a block and its row ---------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GPU_THREAD_H
#define MLAFIX_TRANSFORMS_GPU_THREAD_H

#include "dialect/Guards.h"
#include "dialect/RowProgram.h"
#include "mlir/IR/Builders.h"

namespace mlafix {

/// The names of a thread.
struct Thread {
  mlir::Value id;      ///< in its block, i32
  mlir::Value cluster; ///< its cluster in the grid, i32; null without one
  mlir::Value group;   ///< of the row that it works on, within the block, i32
  mlir::Value lane;    ///< among those of its row, index; null for one lane
  mlir::Value mask;    ///< the row's lanes within their warp, i32; null where
                       ///< they never meet
};
Thread buildThread(mlir::OpBuilder &b, mlir::Location loc, LayoutAttr layout);

/// Checks that the lanes of `kernel`, a GPU's, are a power of two where they
/// wait for each other or exchange values.
llvm::LogicalResult verifyLanes(KernelOp kernel);

/// The rows of a dense grid by their numbers: i32 where the guards bound how
/// many there are, else index.
class GridRows {
public:
  GridRows(mlir::OpBuilder &b, KernelOp kernel, ForallOp forall)
      : b(b), forall(forall), isNarrow(hasRowBound(kernel.getGuardsAttr())) {}

  /// A number, i32, as one of a row.
  mlir::Value number(mlir::Value i32);
  mlir::Value constant(int64_t value);
  /// A number of this type as an index.
  mlir::Value index(mlir::Value number);
  /// How many rows there are.
  mlir::Value count();
  /// The grid's indices of row `row`; after count(). Where `isBundled`, i1,
  /// holds (null: nowhere), `bundle` rows that differ in the first index alone
  /// follow each other, as far as that index has whole bundles.
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

/// A row's program, for the lane that `thread` is, and nothing in it yet.
RowOp buildRow(mlir::OpBuilder &b, mlir::Location loc, const Thread &thread);

/// Where the target can: waits for the preceding grid, then lets the next one
/// begin. To be executed by every thread, before its first access of memory
/// and before it may end: a grid that ends without having waited can be
/// complete before its predecessor is.
void buildDependency(mlir::OpBuilder &b, mlir::Location loc, KernelOp kernel);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GPU_THREAD_H
