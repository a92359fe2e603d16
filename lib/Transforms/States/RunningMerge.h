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

/// True if `op` is in a branch that repeats a merge whose result is not finite
/// (it has a mlafix.repair). Few rows enter it, so its loops are neither
/// chunked nor unrolled.
bool isInRepair(mlir::Operation *op);

/// The merge at the end of each iteration of `loop`, if the loop carries only
/// the state that it merges into and its body neither stores nor branches.
/// Otherwise returns null and sets `reason`.
MergeOp getRunningMerge(mlir::scf::ForOp loop, llvm::StringRef &reason);

/// The running merge of a loop at the top level of a dense grid's body whose
/// trip count a launch knows. Otherwise returns null and sets `reason`.
MergeOp getChunkedMerge(mlir::scf::ForOp loop, llvm::StringRef &reason);

/// Clones an iteration of `loop`, except its `merge`, for induction variable
/// `index`. Loads execute only if `exists`; otherwise loaded states are the
/// identity, and other loads yield what they do for a false predicate.
mlir::IRMapping cloneIteration(mlir::OpBuilder &b, mlir::scf::ForOp loop,
                               MergeOp merge, mlir::Value index,
                               mlir::Value exists);

/// True if mlafix-chunk-merges leaves `loop` to mlafix-unroll-loops: it has few
/// iterations, and a warp can hold their rows.
bool isLeftToUnroll(mlir::scf::ForOp loop, const MachineModel &machine);

/// True if mlafix-unroll-loops fully unrolls `loop`; its merges then become
/// one.
bool isUnrolledWhole(mlir::scf::ForOp loop, const MachineModel &machine);

/// True if `value` (a lse or number), computed where `isInLoop` holds, does not
/// depend on rows. Otherwise returns false and sets `reason`.
bool isKnownWithoutRows(mlir::Value value,
                        llvm::function_ref<bool(mlir::Value)> isInLoop,
                        llvm::StringRef &reason);

/// True if mlafix-chunk-merges weighs each state of `loop` once, relative to
/// the overall largest lse, which an earlier loop finds. Requires long rows,
/// and lses that do not depend on rows.
bool isWeighedOnce(mlir::scf::ForOp loop, const MachineModel &machine);

/// Sets LLVM's unrolling of `loop`.
void setUnrolling(mlir::scf::ForOp loop, mlir::LLVM::LoopUnrollAttr how);

/// The number of ops in the body of `loop`, nested ones included.
uint64_t countOps(mlir::scf::ForOp loop);

/// Bytes of the rows that one iteration of `loop` loads; rows of unknown length
/// count as 0.
int64_t countRowBytes(mlir::scf::ForOp loop);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_STATES_RUNNINGMERGE_H
