//===- TargetCheck.h - what a GPU must have for a kernel --------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_TARGET_TARGETCHECK_H
#define MLAFIX_LIB_TARGET_TARGETCHECK_H

#include "lib/Target/Targets.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlafix::target {

/// Emits an error at each operation of `module` (LLVM and NVVM dialects) that
/// `target`, a GPU, has no instruction for. Fails if there is such an
/// operation. Without this check, LLVM would abort the process.
llvm::LogicalResult checkTarget(mlir::ModuleOp module,
                                const TargetSpec &target);

/// Returns the PTX version (10 * major + minor) that `module` (LLVM dialect)
/// needs if the lowest version for `target` is too old, else 0. For example,
/// fp8 needs 8.1 on sm_89. 32-byte accesses need 8.8 on sm_100, since LLVM
/// would otherwise split them.
unsigned requiredPtxVersion(mlir::ModuleOp module, const TargetSpec &target);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_TARGETCHECK_H
