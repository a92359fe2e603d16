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

/// A lowered kernel's signature and code versions, as the pipeline records
/// them.
struct KernelInfo {
  /// The kernel's manifest entry without "code".
  mlir::DictionaryAttr signature;
  llvm::SmallVector<VariantAttr> variants;
};

/// True if `module` has been through the pipeline (carries `mlafix.signature`).
bool isLowered(mlir::ModuleOp module);

/// Removes `mlafix.signature` and every `mlafix.variant` from `module` and
/// returns them. Emits an error and fails if they are missing or malformed.
llvm::FailureOr<KernelInfo> takeKernelInfo(mlir::ModuleOp module);

/// Registers the translations of all dialects that lowered kernels use.
void registerTranslations(mlir::DialectRegistry &registry);

/// Translates `module` to LLVM IR for `target`, whose code generator is
/// `machine`. The entries of `info` stay external, everything else becomes
/// internal. Fails if the translation emitted an error.
llvm::Expected<std::unique_ptr<llvm::Module>>
translateToLLVMIR(mlir::ModuleOp module, const KernelInfo &info,
                  const TargetSpec &target, llvm::TargetMachine &machine,
                  llvm::LLVMContext &context);

/// Runs LLVM's O3. For NVPTX some passes are skipped, and avoidPtxasFaults()
/// and streamLoads() run at the end. Functions are not recognised as C library
/// functions, and no calls to these are created.
void optimize(llvm::Module &module, llvm::TargetMachine &machine);

/// For NVPTX: rewrites code that ptxas 13.0 miscompiles.
void avoidPtxasFaults(llvm::Module &module);

/// Rewrites 32-bit negations in PTX as ~x + 1; see avoidPtxasFaults().
std::string rewriteNegations(llvm::StringRef ptx);

/// The bytes of local memory that `entry`, a kernel of `ptx`, has for arrays of
/// its own. Whatever else it takes there is spilled registers.
uint64_t countLocalBytes(llvm::StringRef ptx, llvm::StringRef entry);

/// Lets `entry`, a kernel of `ptx`, use more registers. If the number of
/// resident blocks limits them, removes that limit. Otherwise allows as many as
/// one block may have, since ptxas may spill before it uses all of these.
/// Returns false if `entry` already may use those.
bool giveRegisters(std::string &ptx, llvm::StringRef entry);

/// For NVPTX: gives 16-byte loads with !nontemporal the evict-first cache hint.
void streamLoads(llvm::Module &module);

/// A code generator pass that replaces divisions of more than 64 bits, for
/// which targets have no code, by 64-bit divisions or by loops over the bits.
llvm::FunctionPass *createWideDivisionsPass();

/// Runs `machine`'s code generator. Errors that it would otherwise print are
/// returned.
llvm::Expected<std::string>
generateCode(llvm::Module &module, llvm::TargetMachine &machine, bool assembly);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_LLVMIR_H
