//===- SharedChunks.h - chunks in shared memory -----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_MERGES_SHAREDCHUNKS_H
#define MLAFIX_TRANSFORMS_MERGES_SHAREDCHUNKS_H

#include "dialect/RowProgram.h"

namespace mlafix {

/// Shared memory for the f32 packs and numbers that each thread in a layout of
/// lane groups has of its group's chunk. One group reads the chunks of all.
class SharedChunks {
public:
  /// Allocates memory for values of `types`.
  SharedChunks(mlir::OpBuilder &b, mlir::Location loc, RowOp row,
               LayoutAttr layout, mlir::TypeRange types);

  /// Writes this thread's values.
  void write(mlir::ValueRange values);
  /// Reads the values that this thread's counterpart in `group` (i32) wrote
  /// before a barrier.
  llvm::SmallVector<mlir::Value> read(mlir::Value group);

private:
  mlir::Value indexOf(mlir::Value group, int64_t before, int64_t elements);

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Value group, groupThreads, member; // from the row, i32
  int64_t threads;                         // most threads per block
  llvm::SmallVector<mlir::Type> types;
  mlir::Value buffer;
};

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_MERGES_SHAREDCHUNKS_H
