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
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Module.h"
#include <memory>
#include <string>
#include <vector>

namespace llvm {
class FunctionPass;
class TargetMachine;
} // namespace llvm

namespace mlafix::target {

/// The signature and code versions of a lowered kernel, as the pipeline records
/// them in the module.
struct KernelInfo {
  /// The kernel's manifest entry without "code".
  mlir::DictionaryAttr signature;
  llvm::SmallVector<VariantAttr> variants;
};

/// Returns true if `module` has been through the pipeline, which adds
/// `mlafix.signature`.
bool isLowered(mlir::ModuleOp module);

/// Removes `mlafix.signature` and every `mlafix.variant` from `module`, and
/// returns them. Emits an error and fails if one is missing or malformed.
llvm::FailureOr<KernelInfo> takeKernelInfo(mlir::ModuleOp module);

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

/// Splits `module` (LLVM dialect) into one module per function of `entries`.
/// Each module gets all definitions that its entry uses. Definitions move;
/// declarations are copied. Returns an empty list and leaves `module` unchanged
/// in these cases:
///   - there is only one entry, or a function of `entries` is missing;
///   - two entries share a definition;
///   - `module` has an op that is no function or global;
///   - the uses cannot be determined (function pointers, for example).
std::vector<mlir::OwningOpRef<mlir::ModuleOp>>
splitCodeVersions(mlir::ModuleOp module, llvm::ArrayRef<std::string> entries);

/// Registers the translations of all dialects that lowered kernels use.
void registerTranslations(mlir::DialectRegistry &registry);

/// Gives each function of `module` (LLVM dialect) a debug scope with line
/// directives only, and each operation one source position. The position is the
/// start of the first file range in the operation's location, or line 0
/// (unknown) if it has none.
void attachLineInfo(mlir::ModuleOp module);

/// Translates `module` to LLVM IR for `target` and its code generator
/// `machine`. Only the entries of `info` stay external. Fails if the
/// translation emits an error.
llvm::Expected<std::unique_ptr<llvm::Module>>
translateToLLVMIR(mlir::ModuleOp module, const KernelInfo &info,
                  const TargetSpec &target, llvm::TargetMachine &machine,
                  llvm::LLVMContext &context);

/// Runs LLVM's O3 pipeline. On NVPTX it skips some passes, and runs
/// avoidPtxasFaults() and streamLoads() at the end. It neither recognises C
/// library functions nor creates calls to them.
void optimize(llvm::Module &module, llvm::TargetMachine &machine);

/// Rewrites code that ptxas 13.0 would miscompile. Only for NVPTX.
void avoidPtxasFaults(llvm::Module &module);

/// Rewrites each 32-bit negation -x in PTX as ~x + 1; see avoidPtxasFaults().
std::string rewriteNegations(llvm::StringRef ptx);

/// Returns the size in bytes of the local arrays that the kernel `entry` of
/// `ptx` declares. Any further local memory that the assembler reports holds
/// spilled registers.
uint64_t countLocalBytes(llvm::StringRef ptx, llvm::StringRef entry);

/// Lets the kernel `entry` of `ptx` use more registers. If a directive requires
/// several resident blocks per multiprocessor, removes it. Without such a
/// directive, asks for one resident block, since ptxas may otherwise spill
/// early. Returns false if the PTX already asks for one.
bool giveRegisters(std::string &ptx, llvm::StringRef entry);

/// Replaces 16-byte loads with !nontemporal by loads that allocate no line in
/// the L1 cache (`ld.global.L1::no_allocate`). Only for NVPTX.
void streamLoads(llvm::Module &module);

/// Creates a code generator pass that replaces divisions of more than 64 bits,
/// for which targets have no instructions, by 64-bit divisions or by loops over
/// the bits.
llvm::FunctionPass *createWideDivisionsPass();

/// Generates code for `module` with `machine`: assembly text, or an object
/// file. Returns the errors that LLVM would otherwise print.
llvm::Expected<std::string>
generateCode(llvm::Module &module, llvm::TargetMachine &machine, bool assembly);

/// Joins the PTX of several modules for the same target into one PTX module.
std::string joinPtx(llvm::ArrayRef<std::string> modules);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_LLVMIR_H
