//===- OnlyChunk.h - code for groups with one chunk -------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_MERGES_ONLYCHUNK_H
#define MLAFIX_TRANSFORMS_MERGES_ONLYCHUNK_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace mlafix {

/// Builds an i1 that is true if the chunk loop `loop` has one iteration in this
/// launch. Each lane group then has at most one chunk.
mlir::Value buildHasOnlyChunk(mlir::OpBuilder &b, mlir::scf::ForOp loop);

/// For each of `values`, finds an equal value in `among` and returns its index
/// there. `values` belong to the chunk loop `loop`, `among` to the chunk loop
/// `other`. Values are equal if they are the same whenever both loops process
/// the same chunk. In both loops, a chunk begins at the sum of the induction
/// variable and an offset. Returns nullopt if one of `values` has no equal.
/// Loads are compared by their operands, so no store may come between them.
std::optional<llvm::SmallVector<size_t>>
findOfChunk(mlir::scf::ForOp loop, llvm::ArrayRef<mlir::Value> values,
            mlir::scf::ForOp other, llvm::ArrayRef<mlir::Value> among);

/// Adds a branch on `hasOnlyChunk` (i1). If it is false, the ops `before` and
/// then `loop` execute as they are. If it is true, loop-free copies of these
/// ops execute, one version for each value of `isShared` (i1). The first op of
/// `before` is the loop `largest` unless `largest` is null. `largest` has one
/// iteration if `loop` has one. `known` maps values of these iterations to
/// values that are already computed.
void separateOnlyChunk(llvm::ArrayRef<mlir::Operation *> before,
                       mlir::scf::ForOp largest, mlir::scf::ForOp loop,
                       mlir::Value hasOnlyChunk, mlir::Value isShared,
                       const mlir::IRMapping &known);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_MERGES_ONLYCHUNK_H
