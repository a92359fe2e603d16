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

/// The packs and numbers, all of f32, that each thread of a layout of lane
/// groups has of its group's chunk, in shared memory for other groups: one
/// group reads the chunks of all, or all threads add them.
class SharedChunks {
public:
  /// Allocates the memory, for values of `types`.
  SharedChunks(mlir::OpBuilder &b, mlir::Location loc, RowOp row,
               LayoutAttr layout, mlir::TypeRange types);

  /// Leaves this thread's values.
  void write(mlir::ValueRange values);
  /// What this thread's like in `group`, i32, has left, behind a barrier.
  llvm::SmallVector<mlir::Value> read(mlir::Value group);

  /// True if a launch has so many groups, of the fewest threads, that an
  /// element of a chunk has a thread of its own, i1; null if none has.
  mlir::Value buildHasThreadForEach();
  /// Where that holds: leaves this thread's values so that all threads can add
  /// them.
  void writeToAdd(mlir::ValueRange values);
  /// Behind a barrier, all threads add the groups' values, each an element, in
  /// the order of the groups. The first group then reads its sums with
  /// readSums(), behind another barrier.
  void add();
  llvm::SmallVector<mlir::Value> readSums();

private:
  /// Values of `threads` threads: those that belong to one value lie side by
  /// side, behind those of the values before it, from element `first` on.
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
  mlir::Value group, groups, groupThreads, member; // of the row, i32
  int64_t threads;                                 // of a block, at most
  int64_t mostGroups;
  llvm::SmallVector<mlir::Type> types;
  int64_t elements; // of a thread
  mlir::Value buffer;
};

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GPU_SHAREDCHUNKS_H
