//===- InPlace.h - calls whose outputs are inputs ---------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_INPLACE_H
#define MLAFIX_TRANSFORMS_INPLACE_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// Whether the store, called in place, writes the elements that the load read.
bool isSameRow(StoreStateOp store, LoadStateOp load);

/// Whether two arguments are the same tensor, i1 (mlafix.same_tensor).
mlir::Value buildSameTensor(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value x, mlir::Value y);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_INPLACE_H
