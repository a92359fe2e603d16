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

/// True (i1) if the launch passes `memref`; null where that is no optional
/// argument, and so passed always.
mlir::Value buildPresent(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Value memref);

/// Conjunction of predicates that may be absent.
mlir::Value both(mlir::OpBuilder &b, mlir::Location loc, mlir::Value p,
                 mlir::Value q);

/// An access's predicate, and the presence of the argument if that is optional;
/// null for always.
mlir::Value accessPredicate(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value predicate, mlir::Value memref);

/// A tensor that is always given and has dim `dim`, which has a bound, and
/// where among its dims.
std::pair<mlir::BlockArgument, int64_t> findSizeOf(KernelOp kernel,
                                                   DimAttr dim);

/// The number of elements that rows along `dim`, which has a bound, have in
/// this launch, index: the size of that dim of a tensor that is always given.
mlir::Value buildRowSize(mlir::OpBuilder &b, mlir::Location loc,
                         KernelOp kernel, DimAttr dim);

/// True (i1) if both tensors of a state were given and its predicate holds;
/// null for always.
mlir::Value statePredicate(mlir::OpBuilder &b, LoadStateOp load);

/// True if the store, called in place, writes the elements that the load read.
bool isSameRow(StoreStateOp store, LoadStateOp load);

/// True if two arguments are the same tensor, i1 (mlafix.same_tensor).
mlir::Value buildSameTensor(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value x, mlir::Value y);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_ACCESSPREDICATE_H
