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

/// On the scf.if that merges again what is not finite (mlafix-repair-merges):
/// few rows come there, so its loops are neither chunked nor unrolled.
constexpr llvm::StringLiteral kRepairAttr = "mlafix.repair";
bool isInRepair(mlir::Operation *op);

/// The merge that ends each iteration of `loop`, if all that the loop carries
/// is the state that it merges into, and its body neither stores nor branches;
/// null, and a reason, else.
MergeOp getRunningMerge(mlir::scf::ForOp loop, llvm::StringRef &reason);

/// The running merge of a loop at the top of a dense grid's body that a launch
/// knows how often to run; null, and a reason, else.
MergeOp getChunkedMerge(mlir::scf::ForOp loop, llvm::StringRef &reason);

/// Clones one iteration of `loop` but for its `merge`, with the induction
/// variable `index`, so that nothing is read unless `exists`. What is loaded
/// where it does not hold is the identity for states, and for others what their
/// loads give where their predicates do not hold.
mlir::IRMapping cloneIteration(mlir::OpBuilder &b, mlir::scf::ForOp loop,
                               MergeOp merge, mlir::Value index,
                               mlir::Value exists);

/// Ops that unrolling may make of one loop: loops in loops multiply. This
/// bounds the time that compiling takes, whatever the machine.
constexpr uint64_t kMostUnrolledOps = 1024;

/// True if mlafix-chunk-merges leaves `loop` to mlafix-unroll-loops: its
/// iterations are few, and a warp holds their rows.
bool isLeftToUnroll(mlir::scf::ForOp loop, const MachineModel &machine);

/// True if mlafix-unroll-loops leaves nothing of `loop`, whose merges then
/// become one.
bool isUnrolledWhole(mlir::scf::ForOp loop, const MachineModel &machine);

/// True if what is computed of `value`, a state's lse or a number, where
/// `isInLoop` holds, needs no rows; false, and the reason, else.
bool isKnownWithoutRows(mlir::Value value,
                        llvm::function_ref<bool(mlir::Value)> isInLoop,
                        llvm::StringRef &reason);

/// True if mlafix-chunk-merges has each state of `loop` be weighed once,
/// against the largest lse of all, which is found first: lses that are computed
/// from no rows, of rows that are long enough.
bool isWeighedOnce(mlir::scf::ForOp loop, const MachineModel &machine);

/// Says how LLVM is to unroll `loop`.
void setUnrolling(mlir::scf::ForOp loop, mlir::LLVM::LoopUnrollAttr how);

/// Ops in the body of `loop`, those of loops inside it too.
uint64_t countOps(mlir::scf::ForOp loop);

/// Bytes of the rows that one iteration of `loop` loads; rows of unknown length
/// count for none.
int64_t countRowBytes(mlir::scf::ForOp loop);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_STATES_RUNNINGMERGE_H
