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

/// Emits an error at every operation of `module` (LLVM and NVVM dialects) for
/// which `target` (a GPU) or its code generator has no instruction, and fails
/// if there is one. LLVM would abort the process.
llvm::LogicalResult checkTarget(mlir::ModuleOp module,
                                const TargetSpec &target);

/// The PTX `.version` (10 * major + minor) that `module` (LLVM dialect) needs
/// beyond the lowest for `target`, else 0: 8.1 for fp8 on sm_89; 8.8 for
/// 32-byte accesses, which LLVM would otherwise split silently.
unsigned requiredPtxVersion(mlir::ModuleOp module, const TargetSpec &target);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_TARGETCHECK_H
