//===- Iterations.h - loops by their number of iterations -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LANGUAGE_ITERATIONS_H
#define MLAFIX_TRANSFORMS_LANGUAGE_ITERATIONS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

namespace mlafix {

/// Replaces a loop by a loop that counts iterations from 0 in steps of 1. The
/// counter is an index and cannot overflow. The count is exact for all bounds,
/// except that counts from 2^63 on, which no run reaches, become 2^63 - 1. It
/// is 0 if the range is empty or the step is below 1.
mlir::scf::ForOp countIterations(mlir::scf::ForOp loop);

/// Returns true if each iteration of `loop` reduces a row over lanes, for
/// example to the score of a key. The loads of the next rows should then be in
/// flight during the reduction. Returns false if the loop is in another loop or
/// contains branches or loops.
bool reducesRowPerIteration(mlir::scf::ForOp loop);

/// Returns true if the length of `loop` is unknown and each iteration reduces a
/// row. The rows of many iterations are then in flight.
bool reducesRowsInFlight(mlir::scf::ForOp loop);

/// Returns the values that are kept through the whole loop: those that `loop`,
/// an op with one region, carries, and those from outside that the region uses.
llvm::SetVector<mlir::Value> getKeptValues(mlir::Operation *loop);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LANGUAGE_ITERATIONS_H
