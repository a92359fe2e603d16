//===- CodeGen.h - a lowered kernel to code ---------------------*- C++ -*-===//
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

/// The code of one kernel with one set of bindings, for one target.
struct KernelCode {
  std::string output;           // the output file, unless a unit is emitted
  llvm::json::Object signature; // for a unit: the manifest's entry
  target::UnitCode code;        // for a unit
  std::vector<ResourceUsage> resources;
};

/// The assemblers to use, for emissions that need one.
struct Assemblers {
  std::vector<target::Assembler *> all; // best first
  /// The first assembler, already started for the next kernel.
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

/// Generates what `options.emit` asks for from `module` (LLVM dialect), which
/// it consumes. Emits an error on failure.
llvm::FailureOr<KernelCode> generateKernel(mlir::ModuleOp module,
                                           const target::TargetSpec &target,
                                           const CompileOptions &options,
                                           Assemblers &assemblers,
                                           Stopwatch &stopwatch);

} // namespace mlafix

#endif // MLAFIX_LIB_COMPILER_CODEGEN_H
