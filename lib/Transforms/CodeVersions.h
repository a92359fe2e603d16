//===- CodeVersions.h - kernels that rely on guards -------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_CODEVERSIONS_H
#define MLAFIX_TRANSFORMS_CODEVERSIONS_H

#include "lib/Transforms/ChooseLayout.h"

namespace mlafix {

/// A copy of `kernel` before it, called KERNEL_SUFFIX.
KernelOp cloneCodeVersion(KernelOp kernel, llvm::StringRef suffix,
                          LayoutAttr layout,
                          llvm::ArrayRef<mlir::Attribute> guards);

/// The guards of a code version with such packs and lanes; a ragged grid counts
/// its rows in 32 bits (cu_seqlens is i32) and computes the rest in 64.
llvm::SmallVector<mlir::Attribute>
getGuards(mlir::MLIRContext *context, const RowShape &shape, LayoutAttr layout);

/// Takes the arguments that may be the same tensor (N11) for different ones,
/// and adds the guards that this takes: what asks whether they are is false.
void makeDistinct(KernelOp version, mlir::ArrayAttr aliases);

/// Gives the tensors that `version` moves as rows their dense types, and adds
/// the guards that this takes.
void makeDense(KernelOp version, const RowShape &shape);

/// Adds the guards that tensors of the same dims, except those moved as rows,
/// have identical strides, so that one index serves all of them: the lse of all
/// states, as a rule.
void makeIdenticalStrides(KernelOp version, const RowShape &shape);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_CODEVERSIONS_H
