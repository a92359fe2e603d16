//===- WalkPartials.h - reductions over the packs of a walk -----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_WALKPARTIALS_H
#define MLAFIX_TRANSFORMS_WALKPARTIALS_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// What a reduction makes of each pack of a walk, in a buffer, which is reduced
/// by the tree of `reduceTree` when the walk is over. Of a longer walk the
/// buffer holds a part at a time: a block of that tree.
class WalkPartials {
public:
  /// Of a reduction to `results` elements, each of as many packs.
  WalkPartials(KernelOp kernel, ReduceOp op, int64_t packs, int64_t results);

  /// Keeps `partial`, of the pack that is number `step` of the walk, index.
  void store(mlir::OpBuilder &b, mlir::Value partial, mlir::Value step);
  /// Behind the walk: the buffer that begins with the results.
  mlir::Value finish(mlir::OpBuilder &b);

private:
  void reduce(mlir::OpBuilder &b, mlir::Value buffer, int64_t count,
              int64_t left);
  void endBlock(mlir::OpBuilder &b, int64_t count, mlir::Value number);

  ReduceOp op;
  int64_t packs, results;
  int64_t block; // packs of a block, a power of two
  mlir::Value buffer;
  mlir::Value blocks; // the results of full buffers; null: there is one block
};

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_WALKPARTIALS_H
