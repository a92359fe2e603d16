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

/// Shared memory for the chunks of lane groups. It holds the f32 packs and
/// numbers that each thread has of the chunk of its group. One group reads the
/// chunks of all groups.
class SharedChunks {
public:
  /// Allocates memory for values of `types` of every thread.
  SharedChunks(mlir::OpBuilder &b, mlir::Location loc, RowOp row,
               LayoutAttr layout, mlir::TypeRange types);

  /// Writes this thread's values.
  void write(mlir::ValueRange values);
  /// Reads values of `group` (i32): those of the thread with this thread's
  /// number in that group. The other thread must have written them before a
  /// barrier.
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
