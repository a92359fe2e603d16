//===- RowBatches.h - scalars of many rows at once --------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_CPU_ROWBATCHES_H
#define MLAFIX_TRANSFORMS_CPU_ROWBATCHES_H

#include "dialect/Mlafix.h"
#include "mlir/IR/Builders.h"

namespace mlafix {

/// Whether the scalars of many rows of `kernel` may be computed before the
/// first of these rows is moved, and whether there is enough to compute.
/// `aliases` are the pairs of arguments that may be the same tensor.
bool canBatchScalars(KernelOp kernel, mlir::ArrayAttr aliases);

/// Of how many rows a range should be a multiple where rows are done in batches
/// of `batch` along the outermost extent; 1 if that is not known.
int64_t getBatchRows(ForallOp forall, int64_t batch);

/// For a kernel for which canBatchScalars holds: builds loops over as many
/// batches as lie in rows `begin` to `end`, and answers the row after them.
mlir::Value buildRowBatches(mlir::OpBuilder &b, KernelOp kernel,
                            ForallOp forall, mlir::Value begin,
                            mlir::Value end);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_CPU_ROWBATCHES_H
