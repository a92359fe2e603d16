//===- Target.h - what the passes know of a target -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_TARGET_H
#define MLAFIX_TRANSFORMS_TARGET_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace mlafix {

/// Name of the module's attribute that holds the target, a string: written by
/// mlafix-plan-layout, read by the passes after it.
inline constexpr llvm::StringLiteral kTargetAttr = "mlafix.target";
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

/// Whether the GPU `target` has instructions that make fp8 of f32 (sm_89 and
/// later).
bool hasFp8Conversion(llvm::StringRef target);

/// Threads that a multiprocessor of the GPU `target` holds at once (CUDA
/// programming guide, technical specifications per compute capability).
int64_t getThreadsPerMultiprocessor(llvm::StringRef target);

/// Bytes of the widest load and store of the GPU `target` (PTX ISA 8.8, ld:
/// vectors of 256 bits need sm_100).
int64_t getAccessBytes(llvm::StringRef target);

/// Whether the CPU `target` has registers of 64 bytes.
bool hasWideRegisters(llvm::StringRef target);

/// Whether a grid can wait for its predecessor in code (griddepcontrol, PTX ISA
/// 7.8: sm_90 and later), so that it may be launched before that one ends.
bool hasDependentLaunch(llvm::StringRef target);

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_TARGET_H
