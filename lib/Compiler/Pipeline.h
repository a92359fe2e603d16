//===- Pipeline.h - the list of all passes ----------------------*- C++ -*-===//
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

/// The target and the bindings to compile for, and the stages to run.
struct PipelineOptions {
  /// A (name, value) pair for each compile-time name that is bound:
  /// {"H", "128"}, {"T", "bf16"}, {"out_lse", "absent"}.
  llvm::SmallVector<std::pair<std::string, std::string>> bindings;
  /// The target's name in mlafix/Targets.def. Empty if there is no target.
  std::string target;
  /// Overrides of the target's model (lib/Machine/MachineModel.def), each as
  /// "NAME=VALUE".
  std::vector<std::string> machine;
  /// Plan fields that override the choices of mlafix-plan-kernel, each as
  /// NAME=VALUE or VERSION.NAME=VALUE.
  std::vector<std::string> plan;
  /// The name of the only code version to keep. If the name is empty, all code
  /// versions are kept.
  std::string variant;
  /// The first stage to run and the last one.
  Stage first = Stage::Specialized;
  Stage last = Stage::LLVM;
};

/// Appends the passes from `options.first` to `options.last`, at most from the
/// mlafix dialect to the LLVM dialect. The stages before the layout need
/// neither bindings nor a target. If neither is given, names stay unbound.
///
/// After the complete pipeline, a module with one kernel has one llvm.func per
/// code version, each with a `mlafix.variant` attribute. The module carries
/// `mlafix.signature`.
void buildMlafixPipeline(mlir::OpPassManager &pm,
                         const PipelineOptions &options);

/// Registers the passes for command lines, and the pipeline
/// `mlafix-pipeline{bindings=… target=… machine=…}`.
void registerMlafixPasses();

} // namespace mlafix

#endif // MLAFIX_COMPILER_PIPELINE_H
