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

/// True if `x`, in the body of a loop over chunks, and `y`, in that of another
/// one, are the same of one chunk: both loops add an offset to what they count.
/// Of loads, that nothing is stored meanwhile.
bool areAlikeOfChunk(mlir::scf::ForOp loopOfX, mlir::Value x,
                     mlir::scf::ForOp loopOfY, mlir::Value y);

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
