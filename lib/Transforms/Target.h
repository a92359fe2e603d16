//===- Target.h - the target of a module ------------------------*- C++ -*-===//
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

/// The module attribute with the name of the target. mlafix-plan-kernel writes
/// it, and later passes read it.
inline constexpr llvm::StringLiteral kTargetAttr = "mlafix.target";
/// The module attribute with overrides of the target's model, one "NAME=VALUE"
/// each. mlafix-plan-kernel writes it, and later passes read it.
inline constexpr llvm::StringLiteral kMachineAttr = "mlafix.machine";
/// The module attribute with the kernel's signature (getSignature).
inline constexpr llvm::StringLiteral kSignatureAttr = "mlafix.signature";
/// The function attribute that describes a code version (docs/UnitFormat.md,
/// `variants`).
inline constexpr llvm::StringLiteral kCodeVersionAttr = "mlafix.variant";

/// The function attribute with the plan of a code version.
inline constexpr llvm::StringLiteral kPlanAttr = "mlafix.plan";

/// Returns the target of the module that contains `op`, or "" if
/// mlafix-plan-kernel has not run yet.
llvm::StringRef getTarget(mlir::Operation *op);
/// Returns true if `target` names a GPU.
inline bool isGPU(llvm::StringRef target) { return target.starts_with("sm_"); }

/// Returns the model of the module's target, with the overrides that
/// mlafix-plan-kernel was given. Before this pass, and for unknown targets,
/// returns the default model.
MachineModel getMachine(mlir::Operation *op);

/// Returns the model for the options of a pass: `target`, and the `overrides`
/// of the option `machine`. Reports an error at `op` if an option is invalid.
llvm::FailureOr<MachineModel> getMachine(mlir::Operation *op,
                                         llvm::StringRef target,
                                         llvm::ArrayRef<std::string> overrides);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_TARGET_H
