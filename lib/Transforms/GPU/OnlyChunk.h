//===- OnlyChunk.h - code for groups with one chunk -------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GPU_ONLYCHUNK_H
#define MLAFIX_TRANSFORMS_GPU_ONLYCHUNK_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace mlafix {

/// True if a launch has one iteration of the loop over chunks `loop`, i1: each
/// group of lanes then has one chunk at most.
mlir::Value buildHasOnlyChunk(mlir::OpBuilder &b, mlir::scf::ForOp loop);

/// Where `among`, in the body of the loop over chunks `other`, are the values
/// that `values` are in that of `loop` for the same chunk: both loops add an
/// offset to what they count. None if one is missing. Of loads, that nothing is
/// stored meanwhile.
std::optional<llvm::SmallVector<size_t>>
findOfChunk(mlir::scf::ForOp loop, llvm::ArrayRef<mlir::Value> values,
            mlir::scf::ForOp other, llvm::ArrayRef<mlir::Value> among);

/// Branches by `hasOnlyChunk`, and then by `isShared`, both i1, to code without
/// loops for what `before` and `loop` do. `before` begins with the loop
/// `largest`, which then has one iteration, too, if there is one. `known` maps
/// values of these iterations to what has them already.
void separateOnlyChunk(llvm::ArrayRef<mlir::Operation *> before,
                       mlir::scf::ForOp largest, mlir::scf::ForOp loop,
                       mlir::Value hasOnlyChunk, mlir::Value isShared,
                       const mlir::IRMapping &known);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GPU_ONLYCHUNK_H
