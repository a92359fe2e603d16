//===- WalkPartials.h - partial results in a loop over packs ----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_ROWS_WALKPARTIALS_H
#define MLAFIX_TRANSFORMS_ROWS_WALKPARTIALS_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// Collects the partial results of a reduction during a walk over the packs,
/// one per iteration, in a buffer. At the end, the partial results are combined
/// by the tree of reduceTree(). In long walks, the buffer holds the partial
/// results of one block of this tree at a time. If the order does not matter,
/// packs are accumulated elementwise instead, in a buffer of one pack.
class WalkPartials {
public:
  /// Prepares a reduction of `steps` iterations to `results` elements. Each
  /// result combines the same number of iterations.
  WalkPartials(KernelOp kernel, ReduceOp op, int64_t steps, int64_t results);
  /// Prepares an order-independent reduction of packs of `type`. Builds the
  /// initialisation of the buffer with `b`, before the walk.
  WalkPartials(mlir::OpBuilder &b, KernelOp kernel, ReduceOp op,
               mlir::VectorType type);

  /// Returns true if the walk passes packs to `meet`, and false if it passes
  /// the partial of each iteration to `store`.
  bool isElementwise() const { return bool(type); }
  /// Accumulates `pack` where `exists`, an i1, is true (null: always true).
  void meet(mlir::OpBuilder &b, mlir::Value pack, mlir::Value exists);
  /// Stores `partial`, the result of iteration `step` (index) of the walk.
  void store(mlir::OpBuilder &b, mlir::Value partial, mlir::Value step);
  /// Completes the reduction after the walk. Returns the buffer, which starts
  /// with the results.
  mlir::Value finish(mlir::OpBuilder &b);

private:
  void reduce(mlir::OpBuilder &b, mlir::Value buffer, int64_t count,
              int64_t left);
  void endBlock(mlir::OpBuilder &b, int64_t count, mlir::Value number);

  ReduceOp op;
  mlir::VectorType type; // null unless accumulated elementwise
  int64_t steps, results;
  int64_t block; // iterations per block of the tree, a power of two
  mlir::Value buffer;
  mlir::Value blocks; // results of full blocks; null if there is only one block
};

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ROWS_WALKPARTIALS_H
