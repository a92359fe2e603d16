//===- Iterations.h - loops by their number of iterations -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_LANGUAGE_ITERATIONS_H
#define MLAFIX_TRANSFORMS_LANGUAGE_ITERATIONS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlafix {

/// Replaces a loop by one that counts its iterations from 0 in steps of 1, in
/// an index that cannot overflow. The count is exact for all bounds: 0 if the
/// range is empty or the step is below 1. (Counts from 2^63 on, which no run
/// reaches, become 2^63 - 1.)
mlir::scf::ForOp countIterations(mlir::scf::ForOp loop);

/// True for a loop outside of loops and without branches whose iterations
/// reduce a row over lanes, such as a key's score: the next rows must be in
/// flight meanwhile.
bool reducesRowPerIteration(mlir::scf::ForOp loop);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_LANGUAGE_ITERATIONS_H
