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

/// Name of the module's attribute that holds the target, a string: written by
/// mlafix-plan-layout, read by the passes after it.
inline constexpr llvm::StringLiteral kTargetAttr = "mlafix.target";
/// Name of the module's attribute that lists the numbers of the target's model
/// that are replaced, "NAME=VALUE" each: written and read like kTargetAttr.
inline constexpr llvm::StringLiteral kMachineAttr = "mlafix.machine";
/// Name of the module's attribute that holds the kernel's signature (see
/// getSignature).
inline constexpr llvm::StringLiteral kSignatureAttr = "mlafix.signature";
/// Name of the attribute that describes a code version on its function
/// (docs/UnitFormat.md, `variants`).
inline constexpr llvm::StringLiteral kCodeVersionAttr = "mlafix.variant";

/// Name of the unit attribute on a kernel, and on its function, whose rows are
/// neither reduced nor stored in another width than they are loaded in.
inline constexpr llvm::StringLiteral kPlainRowsAttr = "mlafix.plain_rows";
/// Name of the unit attribute of what prefetches for a later block: it need not
/// come before the loads of this one.
inline constexpr llvm::StringLiteral kAheadAttr = "mlafix.ahead";

/// The target of the module that `op` is in; empty before mlafix-plan-layout.
llvm::StringRef getTarget(mlir::Operation *op);
/// True if `target` names a GPU.
inline bool isGPU(llvm::StringRef target) { return target.starts_with("sm_"); }

/// The model of the target of the module that `op` is in, with the numbers that
/// mlafix-plan-layout was told to replace. The table's first values before
/// mlafix-plan-layout, and for a target that it does not have.
MachineModel getMachine(mlir::Operation *op);

/// The model of a pass's options `target` and `machine`; what is wrong with
/// them is an error at `op`.
llvm::FailureOr<MachineModel> getMachine(mlir::Operation *op,
                                         llvm::StringRef target,
                                         llvm::ArrayRef<std::string> overrides);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_TARGET_H
