//===- SourceCheck.cpp - what a source may hold ---------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Compiler/SourceCheck.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

/// The dialects whose every operation a kernel may use.
static constexpr StringLiteral dialects[] = {"mlafix", "arith", "math", "scf"};

static LogicalResult checkOperation(mlir::Operation *op) {
  if (isa<mlir::arith::RemFOp>(op))
    return op->emitError("expected an operation that every target has, got "
                         "'arith.remf', which CPUs have not");
  StringRef dialect = op->getName().getDialectNamespace();
  if (is_contained(dialects, dialect) || isa<mlir::memref::DimOp>(op))
    return success();
  return op->emitError() << "expected operations of "
                         << join(ArrayRef(dialects), ", ")
                         << " or memref.dim in a kernel, got '" << op->getName()
                         << "'";
}

LogicalResult mlafix::checkSource(mlir::ModuleOp module) {
  bool failed = false;
  module.walk([&](mlir::Operation *op) {
    if (op != module)
      failed |= llvm::failed(checkOperation(op));
  });
  return failure(failed);
}
