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

/// Shared memory for the chunks of lane groups. Each thread writes its f32
/// packs and numbers of its group's chunk. One group reads the chunks of all
/// groups.
class SharedChunks {
public:
  /// Allocates memory for values of `types` of every thread.
  SharedChunks(mlir::OpBuilder &b, mlir::Location loc, RowOp row,
               LayoutAttr layout, mlir::TypeRange types);

  /// Writes this thread's values.
  void write(mlir::ValueRange values);
  /// Reads the values of one thread of `group` (i32): the thread that has the
  /// same number in `group` as this thread has in its group. A barrier must
  /// separate the write of that thread from this read.
  llvm::SmallVector<mlir::Value> read(mlir::Value group);

private:
  mlir::Value indexOf(mlir::Value group, int64_t before, int64_t elements);

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Value group, groupThreads, member; // i32, copied from `row`
  // The largest number of threads per block.
  int64_t threads;
  llvm::SmallVector<mlir::Type> types;
  mlir::Value buffer;
};

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_MERGES_SHAREDCHUNKS_H
