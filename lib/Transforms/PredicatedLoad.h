//===- PredicatedLoad.h - loads that take no branch -------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_PREDICATEDLOAD_H
#define MLAFIX_TRANSFORMS_PREDICATEDLOAD_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <optional>

namespace mlafix {

/// The value of `load` where `condition` holds, else any value: a load that
/// takes no branch, and stays where it is, where LLVM and ptxas would move
/// others to their uses. A pack that is wider than one load takes two, as 16
/// elements of bf16 do beside fp8. Null for a type that has no such load, and
/// for a pack whose address need not be a multiple of what one load takes.
mlir::Value buildPredicatedLoad(mlir::OpBuilder &b, mlir::LLVM::LoadOp load,
                                mlir::Value condition);

/// A load that buildPredicatedLoad() has made.
struct PredicatedLoad {
  mlir::Value pointer, condition;
  mlir::Type type;
};
std::optional<PredicatedLoad> asPredicatedLoad(mlir::Operation *op);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_PREDICATEDLOAD_H
