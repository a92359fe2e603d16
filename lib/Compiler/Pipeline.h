//===- Pipeline.h - the one list of passes -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_COMPILER_PIPELINE_H
#define MLAFIX_COMPILER_PIPELINE_H

#include "mlir/Pass/PassManager.h"

#include <string>
#include <utility>

namespace mlafix {

/// Stages at which the pipeline may stop.
enum class Stage {
  Specialized,
  Canonical,
  Lowered,
  Layout,
  Distributed,
  LLVM,
};

/// The target and bindings to compile for.
struct PipelineOptions {
  /// (name, value) of every compile-time dim and dtype variable: {"H", "128"},
  /// {"T", "bf16"}.
  llvm::SmallVector<std::pair<std::string, std::string>> bindings;
  /// A name of mlafix/Targets.def.
  std::string target;
  /// Overrides of the target's model (lib/Machine/MachineModel.def), each as
  /// "NAME=VALUE".
  std::vector<std::string> machine;
  /// Fields of plans that are given (mlafix-plan-kernel): NAME=VALUE or
  /// VERSION.NAME=VALUE each.
  std::vector<std::string> plan;
  /// The code version to keep; all if empty.
  std::string variant;
  /// The first stage to run and the last one.
  Stage first = Stage::Specialized;
  Stage last = Stage::LLVM;
};

/// Appends all passes from the mlafix dialect to the LLVM dialect, or to the
/// stage that `options` names. The stages before the layout need neither
/// bindings nor a target; names stay unbound without them. Afterwards a module
/// with one kernel has one llvm.func per code version, each with a
/// `mlafix.variant` attribute, and carries `mlafix.signature`.
void buildMlafixPipeline(mlir::OpPassManager &pm,
                         const PipelineOptions &options);

/// Registers the passes, and the pipeline `mlafix-pipeline{bindings=… target=…
/// machine=…}`, for command lines.
void registerMlafixPasses();

} // namespace mlafix

#endif // MLAFIX_COMPILER_PIPELINE_H
