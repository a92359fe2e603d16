//===- RunningMerge.h - loops that merge into one state ---------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_STATES_RUNNINGMERGE_H
#define MLAFIX_TRANSFORMS_STATES_RUNNINGMERGE_H

#include "dialect/Mlafix.h"
#include "lib/Machine/MachineModel.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace mlafix {

/// Returns true if `op` is in a branch with a mlafix.repair, which repeats a
/// merge whose result is not finite. Few rows enter such a branch, so its loops
/// are neither split into chunks nor unrolled.
bool isInRepair(mlir::Operation *op);

/// Returns the merge at the end of each iteration of `loop`. Returns null and
/// sets `reason` unless the loop carries only the state that it merges into,
/// and its body neither stores nor branches.
MergeOp getRunningMerge(mlir::scf::ForOp loop, llvm::StringRef &reason);

/// Returns the running merge of a loop that can be split into chunks. The loop
/// must be at the top level of a dense grid's body, and its trip count must be
/// known at launch. Otherwise returns null and sets `reason`.
MergeOp getChunkedMerge(mlir::scf::ForOp loop, llvm::StringRef &reason);

/// Clones an iteration of `loop`, except its `merge`, with `index` for the
/// induction variable. Where the i1 `exists` is false, loads do not execute:
/// loaded states are the identity, and other loads yield their value for a
/// false predicate.
mlir::IRMapping cloneIteration(mlir::OpBuilder &b, mlir::scf::ForOp loop,
                               MergeOp merge, mlir::Value index,
                               mlir::Value exists);

/// Returns true if mlafix-chunk-merges leaves `loop` to mlafix-unroll-loops,
/// since it has few iterations and a warp can hold their rows.
bool isLeftToUnroll(mlir::scf::ForOp loop, const MachineModel &machine);

/// Returns true if mlafix-unroll-loops fully unrolls `loop`. The merges of all
/// iterations then become one.
bool isUnrolledWhole(mlir::scf::ForOp loop, const MachineModel &machine);

/// Returns true if `value`, or the lse of `value` if it is a state, does not
/// depend on rows of a loop. Otherwise returns false and sets `reason`.
/// `isInLoop` tells which values belong to the loop.
bool isKnownWithoutRows(mlir::Value value,
                        llvm::function_ref<bool(mlir::Value)> isInLoop,
                        llvm::StringRef &reason);

/// Returns true if mlafix-chunk-merges weighs each state of `loop` once,
/// relative to the overall largest lse, which an earlier loop finds. This
/// requires long rows, and lses that do not depend on rows.
bool isWeighedOnce(mlir::scf::ForOp loop, const MachineModel &machine);

/// Tells LLVM how to unroll `loop`.
void setUnrolling(mlir::scf::ForOp loop, mlir::LLVM::LoopUnrollAttr how);

/// Returns the number of ops in the body of `loop`, including nested ops.
uint64_t countOps(mlir::scf::ForOp loop);

/// Returns the size in bytes of the rows that one iteration of `loop` loads.
/// Rows of unknown length count as 0.
int64_t countRowBytes(mlir::scf::ForOp loop);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_STATES_RUNNINGMERGE_H
