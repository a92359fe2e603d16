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

/// Emits an error at every operation of `module` (LLVM and NVVM dialects) that
/// `target`, a GPU, or its code generator has no instruction for, and fails if
/// there was one. LLVM itself would end the process.
llvm::LogicalResult checkTarget(mlir::ModuleOp module,
                                const TargetSpec &target);

/// The PTX `.version` (as 10 * major + minor) that `module` (LLVM dialect)
/// wants beyond the lowest that knows `target`, or 0: 8.1 for fp8 on sm_89, 8.8
/// for accesses of 32 bytes, which LLVM else splits silently.
unsigned requiredPtxVersion(mlir::ModuleOp module, const TargetSpec &target);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_TARGETCHECK_H
