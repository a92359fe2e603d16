//===- AccessPredicate.h - conditions of accesses ---------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_ACCESSPREDICATE_H
#define MLAFIX_TRANSFORMS_ACCESSPREDICATE_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// Builds an i1 that is true if the launch passes `memref`. Returns null for
/// arguments that are always passed.
mlir::Value buildPresent(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Value memref);

/// Builds the conjunction of two predicates. A null argument stands for true.
/// Returns null if both are null.
mlir::Value both(mlir::OpBuilder &b, mlir::Location loc, mlir::Value p,
                 mlir::Value q);

/// Builds the predicate of an access to `memref`: the conjunction of
/// `predicate` and, if `memref` is an optional argument, that the launch passes
/// it. Null stands for true, for `predicate` and for the result.
mlir::Value accessPredicate(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value predicate, mlir::Value memref);

/// Finds a tensor that is always passed and has the bounded dim `dim`. Returns
/// the tensor and the position of the dim.
std::pair<mlir::BlockArgument, int64_t> findSizeOf(KernelOp kernel,
                                                   DimAttr dim);

/// Builds the length (index) that rows along `dim`, a bounded dim, have in this
/// launch. It is taken from a tensor that is always passed.
mlir::Value buildRowSize(mlir::OpBuilder &b, mlir::Location loc,
                         KernelOp kernel, DimAttr dim);

/// Builds an i1 that is true if the predicate of `load` holds and the launch
/// passes both tensors of the state. Returns null if it is always true.
mlir::Value statePredicate(mlir::OpBuilder &b, LoadStateOp load);

/// Returns true if, in an in-place call, `store` writes the elements that
/// `load` reads.
bool isSameRow(StoreStateOp store, LoadStateOp load);

/// Builds an i1 that is true if `x` and `y` are the same tensor in this launch
/// (mlafix.same_tensor).
mlir::Value buildSameTensor(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value x, mlir::Value y);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ACCESSPREDICATE_H
