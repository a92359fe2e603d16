//===- SplitCodeVersions.h - code versions one by one -----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Splits the code versions of a kernel into separate modules. They share no
// definitions, so their code can be generated in parallel.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_TARGET_SPLITCODEVERSIONS_H
#define MLAFIX_LIB_TARGET_SPLITCODEVERSIONS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>
#include <vector>

namespace mlafix::target {

/// Splits `module` (LLVM dialect) into one module per function of `entries`.
/// Each module gets all definitions that its entry uses. Definitions move;
/// declarations are copied. Returns an empty list and leaves `module` unchanged
/// in these cases:
///   - there is only one entry, or a function of `entries` is missing;
///   - two entries share a definition;
///   - `module` has an op that is no function or global;
///   - the uses cannot be determined (function pointers, for example).
std::vector<mlir::OwningOpRef<mlir::ModuleOp>>
splitCodeVersions(mlir::ModuleOp module, llvm::ArrayRef<std::string> entries);

/// Joins the PTX of several modules for the same target into one PTX module.
std::string joinPtx(llvm::ArrayRef<std::string> modules);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_SPLITCODEVERSIONS_H
