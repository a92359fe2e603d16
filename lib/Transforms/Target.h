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
/// Name of the attribute that describes a variant on its function
/// (docs/UnitFormat.md, `variants`).
inline constexpr llvm::StringLiteral kVariantAttr = "mlafix.variant";

/// The target of the module that `op` is in; empty before mlafix-plan-layout.
llvm::StringRef getTarget(mlir::Operation *op);
/// Whether `target` names a GPU.
inline bool isGPU(llvm::StringRef target) { return target.starts_with("sm_"); }

/// What the compiler knows of the target of the module that `op` is in, with
/// the numbers that mlafix-plan-layout was told to replace. The table's first
/// values before mlafix-plan-layout, and for a target that it does not have.
MachineModel getMachine(mlir::Operation *op);

/// The model of a pass's options `target` and `machine`; what is wrong with
/// them is an error at `op`.
llvm::FailureOr<MachineModel> getMachine(mlir::Operation *op,
                                         llvm::StringRef target,
                                         llvm::ArrayRef<std::string> overrides);

/// Builds the guards of a variant and answers what they promise.
mlir::DictionaryAttr makeAlignGuard(mlir::MLIRContext *context,
                                    llvm::ArrayRef<int64_t> args,
                                    int64_t bytes);
mlir::DictionaryAttr makeMaxRowsGuard(mlir::MLIRContext *context,
                                      int64_t value);
mlir::DictionaryAttr makeStrideGuard(mlir::MLIRContext *context, int64_t arg,
                                     int64_t dim, int64_t value);
mlir::DictionaryAttr makeDistinctGuard(mlir::MLIRContext *context, int64_t a,
                                       int64_t b);
mlir::DictionaryAttr makeBeyondCacheGuard(mlir::MLIRContext *context,
                                          llvm::ArrayRef<int64_t> args);
/// The tensors lie in memory alike; the first of them is never left out.
mlir::DictionaryAttr makeSameStridesGuard(mlir::MLIRContext *context,
                                          llvm::ArrayRef<int64_t> args);
/// The argument whose strides are those of `arg`, as the guards promise: the
/// first of its group, or `arg` itself.
int64_t getStrideOwner(mlir::ArrayAttr guards, int64_t arg);
/// Whether the guards promise that two arguments are not the same tensor.
bool areGuardedDistinct(mlir::ArrayAttr guards, int64_t a, int64_t b);
/// The alignment in bytes that the guards promise for the rows of argument
/// `arg`; 0 if none.
int64_t getGuardedAlignment(mlir::ArrayAttr guards, int64_t arg);
/// Whether the guards promise that argument `arg` is one of some that together
/// hold more than the last cache does.
bool isGuardedBeyondCache(mlir::ArrayAttr guards, int64_t arg);
/// Whether the guards bound the number of rows, so that a row index fits 32
/// bits.
bool hasRowBound(mlir::ArrayAttr guards);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_TARGET_H
