//===- Dim.h - dims in text -------------------------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_DIALECT_DIM_H
#define MLAFIX_DIALECT_DIM_H

#include "dialect/Mlafix.h"

namespace mlafix {

/// dim ::= factor | factor `x` factor | factor `per` factor
/// factor ::= string | integer
llvm::FailureOr<DimAttr> parseDim(mlir::AsmParser &parser);
void printDim(mlir::AsmPrinter &printer, DimAttr dim);

} // namespace mlafix

#endif // MLAFIX_DIALECT_DIM_H
