//===- MergeStates.h - the merge of lowered states --------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_STATES_MERGESTATES_H
#define MLAFIX_TRANSFORMS_STATES_MERGESTATES_H

#include "dialect/RowProgram.h"
#include "mlir/IR/PatternMatch.h"

namespace mlafix {

/// A state's values: the largest lse m (f32; -inf exactly when the state is
/// empty), the sum s of the weights relative to it (f32), and the unnormalised
/// accumulator: one row tile, or the packs that a lane has of one.
struct LoweredState {
  mlir::Value max, sum;
  llvm::SmallVector<mlir::Value> acc;

  explicit LoweredState(mlir::ValueRange values)
      : max(values[0]), sum(values[1]), acc(values.drop_front(2)) {}
  LoweredState(mlir::Value max, mlir::Value sum,
               llvm::ArrayRef<mlir::Value> acc)
      : max(max), sum(sum), acc(acc) {}
  llvm::SmallVector<mlir::Value> values() const {
    llvm::SmallVector<mlir::Value> all = {max, sum};
    llvm::append_range(all, acc);
    return all;
  }
};

/// The merge of one or more states of one base, in this order: with m the
/// largest maximum, weights w_i = base^(m_i - m), the sum of w_i * s_i and of
/// w_i * acc_i, each from the first to the last. An accumulator whose weight is
/// zero contributes nothing, whatever it holds (N5); NaN maxima propagate (N6).
LoweredState buildMerge(mlir::OpBuilder &b, mlir::Location loc,
                        llvm::ArrayRef<LoweredState> states, LogBase base);

/// The same of states whose first has the largest maximum of all: it weighs 1.
LoweredState buildMergeToFirst(mlir::OpBuilder &b, mlir::Location loc,
                               llvm::ArrayRef<LoweredState> states,
                               LogBase base);

/// What a merge loop makes of what runs and of a chunk: their merge, their sum
/// where both were weighed against the largest maximum of all, or the larger
/// number.
llvm::SmallVector<mlir::Value> buildChunkMerge(mlir::OpBuilder &b,
                                               MergeLoopOp op,
                                               mlir::ValueRange running,
                                               mlir::ValueRange chunk);

/// The row whose lane groups share the loop; null where none do.
RowOp getSharedRow(MergeLoopOp op);

/// Makes an scf.for of a merge loop whose states are lowered: its index takes
/// steps of `stride`, each iteration computes the chunk at `offset` from it,
/// and `merge` builds the values of the running state with that chunk.
void lowerToFor(mlir::IRRewriter &rewriter, MergeLoopOp op, mlir::Value stride,
                mlir::Value offset,
                llvm::function_ref<llvm::SmallVector<mlir::Value>(
                    mlir::ValueRange running, mlir::ValueRange chunk)>
                    merge);

/// The same where no lane groups share the loop: every iteration merges the
/// chunk at its index.
void lowerToFor(mlir::IRRewriter &rewriter, MergeLoopOp op);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_STATES_MERGESTATES_H
