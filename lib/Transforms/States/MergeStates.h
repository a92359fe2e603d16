//===- MergeStates.h - merge of lowered states ------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_STATES_MERGESTATES_H
#define MLAFIX_TRANSFORMS_STATES_MERGESTATES_H

#include "dialect/MlafixThread.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir {
class TypeConverter;
} // namespace mlir

namespace mlafix {

/// The values of a lowered state. `max` (f32) is the largest lse; it is -inf if
/// and only if the state is empty. `sum` (f32) is the sum of the weights
/// relative to `max`. `acc` is the accumulator before normalisation, as a row
/// tile or as the packs of a lane. If the state is empty, `sum` and `acc` are
/// arbitrary.
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

/// Builds the merge of one or more states with the same base. Let m be the
/// largest maximum. State i then has the weight w_i = base^(m_i - m). The
/// result has the maximum m, the sum of w_i * s_i and the sum of w_i * acc_i,
/// both added in the order of the states. An accumulator with weight zero is
/// ignored (N5). A NaN maximum propagates (N6).
LoweredState buildMerge(mlir::OpBuilder &b, mlir::Location loc,
                        llvm::ArrayRef<LoweredState> states, LogBase base);

/// Builds the merge of states of which the first one must have the largest
/// maximum. The weight of the first state is then 1.
LoweredState buildMergeToFirst(mlir::OpBuilder &b, mlir::Location loc,
                               llvm::ArrayRef<LoweredState> states,
                               LogBase base);

/// Combines the running value of the merge loop `op` with a chunk. If the loop
/// computes a maximum, the result is the larger of both numbers. Otherwise both
/// are states, and the result is their merge. If both are already weighed
/// against the overall maximum (`to_first`), the result is only their sum.
llvm::SmallVector<mlir::Value> buildChunkMerge(mlir::OpBuilder &b,
                                               MergeLoopOp op,
                                               mlir::ValueRange running,
                                               mlir::ValueRange chunk);

/// Returns the row whose lane groups share the loop `op`, or null if there is
/// none.
RowOp getSharedRow(MergeLoopOp op);

/// Converts a merge loop with lowered states to an scf.for whose index advances
/// by `stride`. Each iteration computes the chunk at its index plus `offset`
/// (null: 0). `merge` builds the combination of the running state with this
/// chunk.
void lowerToFor(mlir::IRRewriter &rewriter, MergeLoopOp op, mlir::Value stride,
                mlir::Value offset,
                llvm::function_ref<llvm::SmallVector<mlir::Value>(
                    mlir::ValueRange running, mlir::ValueRange chunk)>
                    merge);

/// Converts a merge loop to an scf.for without lane groups. Each iteration
/// merges the chunk at its index.
void lowerToFor(mlir::IRRewriter &rewriter, MergeLoopOp op);

/// Adds patterns that convert the values which merge loops carry and yield. One
/// value may become several. If a loop carries a state, the new loop records
/// the base of the state.
void populateMergeLoopPatterns(mlir::RewritePatternSet &patterns,
                               const mlir::TypeConverter &converter);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_STATES_MERGESTATES_H
