//===- SharedChunks.h - chunks in shared memory -----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GPU_SHAREDCHUNKS_H
#define MLAFIX_TRANSFORMS_GPU_SHAREDCHUNKS_H

#include "dialect/RowProgram.h"

namespace mlafix {

/// Shared memory for the f32 packs and numbers that each thread in a layout of
/// lane groups has of its group's chunk. Either one group reads the chunks of
/// all groups, or all threads add them.
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

  /// An i1: the launch has enough groups, of the fewest threads, to add each
  /// element of a chunk in a thread of its own. Null if no launch has.
  mlir::Value buildHasThreadForEach();
  /// In that case: writes this thread's values in a layout for add().
  void writeToAdd(mlir::ValueRange values);
  /// Behind a barrier: all threads add the groups' values, one element each, in
  /// the order of the groups. Behind another barrier, the first group reads its
  /// sums with readSums().
  void add();
  llvm::SmallVector<mlir::Value> readSums();

private:
  /// A layout of the values of `threads` threads: equal values are adjacent,
  /// behind the previous value's, starting at element `first`.
  struct Place {
    mlir::Value first;
    int64_t threads;
    mlir::Value thread;
  };
  Place placeOf(mlir::Value group);
  Place placeInGroup(mlir::Value group);
  void write(mlir::ValueRange values, const Place &place);
  llvm::SmallVector<mlir::Value> read(const Place &place);
  mlir::Value indexOf(const Place &place, int64_t before, int64_t elements);

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Value group, groups, groupThreads, member; // from the row, i32
  int64_t threads;                                 // most threads per block
  int64_t mostGroups;
  llvm::SmallVector<mlir::Type> types;
  int64_t elements; // per thread
  mlir::Value buffer;
};

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GPU_SHAREDCHUNKS_H
