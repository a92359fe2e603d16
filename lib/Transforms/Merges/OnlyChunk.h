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

/// An i1: the chunk loop `loop` has one iteration in this launch, so that each
/// lane group has at most one chunk.
mlir::Value buildHasOnlyChunk(mlir::OpBuilder &b, mlir::scf::ForOp loop);

/// Returns, for each of `values` in the body of the chunk loop `loop`, the
/// index in `among` of the value that is the same for the same chunk. `among`
/// are values in the body of the chunk loop `other`. Both loops add an offset
/// to their induction variables. Returns nullopt if a value has no counterpart.
/// Loads count as equal only if nothing is stored in between.
std::optional<llvm::SmallVector<size_t>>
findOfChunk(mlir::scf::ForOp loop, llvm::ArrayRef<mlir::Value> values,
            mlir::scf::ForOp other, llvm::ArrayRef<mlir::Value> among);

/// Adds branches on `hasOnlyChunk`, then on `isShared` (both i1), with
/// loop-free copies of `before` and `loop`. `before` starts with the loop
/// `largest` if that is not null; it has one iteration then as well. `known`
/// maps values of these iterations to values computed already.
void separateOnlyChunk(llvm::ArrayRef<mlir::Operation *> before,
                       mlir::scf::ForOp largest, mlir::scf::ForOp loop,
                       mlir::Value hasOnlyChunk, mlir::Value isShared,
                       const mlir::IRMapping &known);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_MERGES_ONLYCHUNK_H
