//===- SplitCodeVersions.h - code versions one by one -----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The code versions of a kernel share nothing, so that code for each can be
// generated in parallel.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_TARGET_SPLITCODEVERSIONS_H
#define MLAFIX_LIB_TARGET_SPLITCODEVERSIONS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>
#include <vector>

namespace mlafix::target {

/// A module for each of `entries`, functions of `module` (LLVM dialect), with
/// all that it uses. Definitions move there, declarations are copied. Empty,
/// and `module` as it was, if there is but one entry, if two use a definition,
/// which must not be there twice, or if what they use cannot be told, as behind
/// a pointer to a function.
std::vector<mlir::OwningOpRef<mlir::ModuleOp>>
splitCodeVersions(mlir::ModuleOp module, llvm::ArrayRef<std::string> entries);

/// One PTX module of the code of several for the same target.
std::string joinPtx(llvm::ArrayRef<std::string> modules);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_SPLITCODEVERSIONS_H
