//===- DistributeMergeLoops.h - chunks and who merges them ------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_GPU_DISTRIBUTEMERGELOOPS_H
#define MLAFIX_TRANSFORMS_GPU_DISTRIBUTEMERGELOOPS_H

#include "lib/Transforms/RowAccess.h"

#include "mlir/Transforms/DialectConversion.h"

namespace mlafix {

/// Patterns that make `scf.for` of `mlafix.merge_loop`, whose row tiles become
/// packs. In a layout of lane groups, group g computes the chunks g, g +
/// groups, …; the groups leave theirs in shared memory, and the first group
/// merges them in the order of one group alone.
void populateMergeLoopPatterns(mlir::RewritePatternSet &patterns,
                               const mlir::TypeConverter &converter,
                               const RowLayout &layout);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_GPU_DISTRIBUTEMERGELOOPS_H
