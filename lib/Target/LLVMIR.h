//===- LLVMIR.h - from the LLVM dialect to optimised LLVM IR ----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_TARGET_LLVMIR_H
#define MLAFIX_LIB_TARGET_LLVMIR_H

#include "dialect/Mlafix.h"
#include "lib/Target/Targets.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Module.h"
#include <memory>
#include <string>

namespace llvm {
class FunctionPass;
class TargetMachine;
} // namespace llvm

namespace mlafix::target {

/// The description that the pipeline gives of a lowered kernel besides its
/// code.
struct KernelInfo {
  /// The kernel's entry in the manifest, less "code".
  mlir::DictionaryAttr signature;
  llvm::SmallVector<VariantAttr> variants;
};

/// True if `module` has been through the pipeline (carries `mlafix.signature`).
bool isLowered(mlir::ModuleOp module);

/// Takes `mlafix.signature` and every `mlafix.variant` off `module`. Emits an
/// error and fails where they are missing or have the wrong form.
llvm::FailureOr<KernelInfo> takeKernelInfo(mlir::ModuleOp module);

/// Makes the translations of the dialects that a lowered kernel is written in
/// known to `registry`.
void registerTranslations(mlir::DialectRegistry &registry);

/// Translates `module` to LLVM IR for `target`, whose code generator `machine`
/// is. Only the entries of `info` stay visible; everything else becomes
/// internal. Fails where the translation has emitted an error.
llvm::Expected<std::unique_ptr<llvm::Module>>
translateToLLVMIR(mlir::ModuleOp module, const KernelInfo &info,
                  const TargetSpec &target, llvm::TargetMachine &machine,
                  llvm::LLVMContext &context);

/// Runs LLVM's O3 over `module`, for NVPTX without the passes that change no
/// kernel. No function is taken for one of the C
/// library, and none is made into a call to it. For NVPTX, avoidPtxasFaults()
/// and streamLoads() come last.
void optimize(llvm::Module &module, llvm::TargetMachine &machine);

/// For NVPTX: replaces code that ptxas 13.0 compiles wrongly by code that it
/// compiles correctly.
void avoidPtxasFaults(llvm::Module &module);

/// PTX whose negations of 32 bits are written as ~x + 1: see
/// avoidPtxasFaults().
std::string rewriteNegations(llvm::StringRef ptx);

/// For NVPTX: makes loads of 16 bytes with !nontemporal such that the caches
/// drop first.
void streamLoads(llvm::Module &module);

/// A pass of the code generator: makes divisions of more than 64 bits, which
/// targets have no code for, divisions of 64 bits or loops over the bits.
llvm::FunctionPass *createWideDivisionsPass();

/// Runs `machine`'s code generator. What it reports as an error (and would
/// otherwise print) is returned as one.
llvm::Expected<std::string>
generateCode(llvm::Module &module, llvm::TargetMachine &machine, bool assembly);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_LLVMIR_H
