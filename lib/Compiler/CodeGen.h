//===- CodeGen.h - compiles a lowered kernel to code ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_COMPILER_CODEGEN_H
#define MLAFIX_LIB_COMPILER_CODEGEN_H

#include "lib/Compiler/Stopwatch.h"
#include "lib/Target/Assembler.h"
#include "lib/Target/Targets.h"
#include "lib/Target/Unit.h"
#include "mlafix/Compiler.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlafix {

/// The generated code of one kernel, for one set of bindings and one target.
struct KernelCode {
  std::string output; // contents of the output file; empty if a unit is emitted
  llvm::json::Object signature; // if a unit is emitted: the manifest's entry
  target::UnitCode code;        // if a unit is emitted: the unit's code
  std::vector<ResourceUsage> resources;
};

/// The assemblers to use. Empty for emissions that need none.
struct Assemblers {
  std::vector<target::Assembler *> all; // best first
  /// The first assembler, already started for the next kernel. May be null.
  std::unique_ptr<target::Assembly> begun;

  /// Starts the first assembler for the next kernel and `target`.
  void begin(const target::TargetSpec &target, const CompileOptions &options) {
    begun.reset();
    if (!all.empty() && target.isGPU())
      begun = all.front()->begin(target, assemblyOptions(options));
  }

  static target::AssemblyOptions
  assemblyOptions(const CompileOptions &options) {
    return {/*isSingle=*/!options.variant.empty(), options.lineInfo};
  }
};

/// Generates the output that `options.emit` names from `module`, which is in
/// the LLVM dialect and is consumed. Emits an error on failure.
llvm::FailureOr<KernelCode> generateKernel(mlir::ModuleOp module,
                                           const target::TargetSpec &target,
                                           const CompileOptions &options,
                                           Assemblers &assemblers,
                                           Stopwatch &stopwatch);

} // namespace mlafix

#endif // MLAFIX_LIB_COMPILER_CODEGEN_H
