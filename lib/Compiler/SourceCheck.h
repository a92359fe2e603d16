//===- SourceCheck.h - what a source may hold -----------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_COMPILER_SOURCECHECK_H
#define MLAFIX_LIB_COMPILER_SOURCECHECK_H

#include "mlir/IR/BuiltinOps.h"

namespace mlafix {

/// Emits an error at every operation of `module` that no kernel may hold, and
/// fails if there was one: operations of other dialects than the language's,
/// and ones that verify although MLIR's own folds do not survive them.
llvm::LogicalResult checkSource(mlir::ModuleOp module);

} // namespace mlafix

#endif // MLAFIX_LIB_COMPILER_SOURCECHECK_H
