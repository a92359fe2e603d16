//===- Target.h - what the passes know of a target -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_TARGET_H
#define MLAFIX_TRANSFORMS_TARGET_H

#include "lib/Machine/MachineModel.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace mlafix {

/// Module attribute with the target's name, written by mlafix-plan-kernel and
/// read by later passes.
inline constexpr llvm::StringLiteral kTargetAttr = "mlafix.target";
/// Module attribute with overrides of the target's model, "NAME=VALUE" each;
/// written and read like kTargetAttr.
inline constexpr llvm::StringLiteral kMachineAttr = "mlafix.machine";
/// Module attribute with the kernel's signature (getSignature).
inline constexpr llvm::StringLiteral kSignatureAttr = "mlafix.signature";
/// Attribute of a code version's function that describes it
/// (docs/UnitFormat.md, `variants`).
inline constexpr llvm::StringLiteral kCodeVersionAttr = "mlafix.variant";

/// Function attribute with the plan of a code version.
inline constexpr llvm::StringLiteral kPlanAttr = "mlafix.plan";

/// The target of the module that `op` is in; empty before mlafix-plan-kernel.
llvm::StringRef getTarget(mlir::Operation *op);
/// True if `target` names a GPU.
inline bool isGPU(llvm::StringRef target) { return target.starts_with("sm_"); }

/// The model of the module's target, with the overrides given to
/// mlafix-plan-kernel. The table's defaults before that pass, and for unknown
/// targets.
MachineModel getMachine(mlir::Operation *op);

/// The model for a pass's options `target` and `machine`; reports an invalid
/// option as an error at `op`.
llvm::FailureOr<MachineModel> getMachine(mlir::Operation *op,
                                         llvm::StringRef target,
                                         llvm::ArrayRef<std::string> overrides);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_TARGET_H
