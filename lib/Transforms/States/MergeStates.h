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

/// The values of a lowered state: the largest lse m (f32; -inf if and only if
/// the state is empty), the sum s of the weights relative to m (f32), and the
/// unnormalised accumulator, as a row tile or as a lane's packs.
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
/// w_i * acc_i, each from the first to the last. An accumulator with weight
/// zero is ignored (N5); NaN maxima propagate (N6).
LoweredState buildMerge(mlir::OpBuilder &b, mlir::Location loc,
                        llvm::ArrayRef<LoweredState> states, LogBase base);

/// As buildMerge(), if the first state has the largest maximum, so that its
/// weight is 1.
LoweredState buildMergeToFirst(mlir::OpBuilder &b, mlir::Location loc,
                               llvm::ArrayRef<LoweredState> states,
                               LogBase base);

/// Combines the running value of a merge loop with a chunk: their merge; their
/// sum, if both were weighed against the overall maximum; or the larger number.
llvm::SmallVector<mlir::Value> buildChunkMerge(mlir::OpBuilder &b,
                                               MergeLoopOp op,
                                               mlir::ValueRange running,
                                               mlir::ValueRange chunk);

/// The row whose lane groups share the loop; null if there is none.
RowOp getSharedRow(MergeLoopOp op);

/// Converts a merge loop with lowered states to an scf.for. Its index advances
/// by `stride`; each iteration computes the chunk at `offset` from the index,
/// and `merge` combines the running state with that chunk.
void lowerToFor(mlir::IRRewriter &rewriter, MergeLoopOp op, mlir::Value stride,
                mlir::Value offset,
                llvm::function_ref<llvm::SmallVector<mlir::Value>(
                    mlir::ValueRange running, mlir::ValueRange chunk)>
                    merge);

/// As above, without lane groups: every iteration merges the chunk at its
/// index.
void lowerToFor(mlir::IRRewriter &rewriter, MergeLoopOp op);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_STATES_MERGESTATES_H
