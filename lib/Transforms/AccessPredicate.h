//===- AccessPredicate.h - where accesses happen ----------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_ACCESSPREDICATE_H
#define MLAFIX_TRANSFORMS_ACCESSPREDICATE_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// An i1 that is true if the launch passes `memref`; null for arguments that
/// are always passed.
mlir::Value buildPresent(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Value memref);

/// The conjunction of two predicates; null means true.
mlir::Value both(mlir::OpBuilder &b, mlir::Location loc, mlir::Value p,
                 mlir::Value q);

/// The predicate of an access, combined with the presence of an optional
/// argument; null means true.
mlir::Value accessPredicate(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value predicate, mlir::Value memref);

/// Finds a tensor that is always passed and has the bounded dim `dim`; returns
/// it with the dim's position.
std::pair<mlir::BlockArgument, int64_t> findSizeOf(KernelOp kernel,
                                                   DimAttr dim);

/// The length of rows along `dim`, a bounded dim, in this launch (index), taken
/// from a tensor that is always passed.
mlir::Value buildRowSize(mlir::OpBuilder &b, mlir::Location loc,
                         KernelOp kernel, DimAttr dim);

/// An i1: both tensors of a state are passed and its predicate holds; null
/// means true.
mlir::Value statePredicate(mlir::OpBuilder &b, LoadStateOp load);

/// True if an in-place call stores to the elements that `load` reads.
bool isSameRow(StoreStateOp store, LoadStateOp load);

/// An i1 that is true if two arguments are the same tensor
/// (mlafix.same_tensor).
mlir::Value buildSameTensor(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value x, mlir::Value y);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ACCESSPREDICATE_H
