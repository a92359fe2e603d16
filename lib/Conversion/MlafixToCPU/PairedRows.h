//===- PairedRows.h - rows of bf16 as words of two elements -----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_CONVERSION_MLAFIXTOCPU_PAIREDROWS_H
#define MLAFIX_CONVERSION_MLAFIXTOCPU_PAIREDROWS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace mlafix {

/// Conversions of vectors from and to bf16.
using Conversions = llvm::SmallPtrSet<mlir::Operation *, 16>;

/// The conversions between which the order of a vector's elements does not
/// matter: all that comes from them is computed element by element and goes
/// back to bf16. In f32 the even elements may then stand before the odd ones,
/// which is how 32-bit words of two bf16 come apart and together without
/// moving anything across.
Conversions findPairedConversions(mlir::LLVM::LLVMFuncOp function);

} // namespace mlafix

#endif // MLAFIX_CONVERSION_MLAFIXTOCPU_PAIREDROWS_H
