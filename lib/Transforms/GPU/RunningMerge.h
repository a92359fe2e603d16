//===- RunningMerge.h - loops that merge into one state ---------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GPU_RUNNINGMERGE_H
#define MLAFIX_TRANSFORMS_GPU_RUNNINGMERGE_H

#include "dialect/Mlafix.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace mlafix {

/// The merge that ends each iteration of `loop`, if all that the loop carries
/// is the state that it merges into, and its body neither stores nor branches;
/// null, and a reason, else.
MergeOp getRunningMerge(mlir::scf::ForOp loop, llvm::StringRef &reason);

/// Clones one iteration of `loop` but for its `merge`, with the induction
/// variable `index`, so that nothing is read unless `exists`. What is loaded
/// where it does not hold is the identity for states, and for others what their
/// loads give where their predicates do not hold.
mlir::IRMapping cloneIteration(mlir::OpBuilder &b, mlir::scf::ForOp loop,
                               MergeOp merge, mlir::Value index,
                               mlir::Value exists);

/// Bytes of the rows that one iteration of `loop` loads; rows of unknown length
/// count for none.
int64_t countRowBytes(mlir::scf::ForOp loop);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GPU_RUNNINGMERGE_H
