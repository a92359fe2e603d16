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

/// Points of the pipeline at which it may end.
enum class Stage {
  Specialized,
  Canonical,
  Lowered,
  Layout,
  Distributed,
  LLVM,
};

/// The target and the bindings that a source is compiled for.
struct PipelineOptions {
  /// (name, value) of every compile-time dim and dtype variable: {"H", "128"},
  /// {"T", "bf16"}.
  llvm::SmallVector<std::pair<std::string, std::string>> bindings;
  /// A name of mlafix/Targets.def.
  std::string target;
  /// Numbers of the target's model to replace (lib/Machine/MachineModel.def):
  /// "NAME=VALUE" each.
  std::vector<std::string> machine;
  /// The code version to keep; all of them if empty.
  std::string variant;
  /// The first stage that is still to be made, and the last one to reach.
  Stage first = Stage::Specialized;
  Stage last = Stage::LLVM;
};

/// Appends every pass from a source in the mlafix dialect to the LLVM dialect,
/// or to the stage that `options` names. Without bindings and without a target,
/// which the stages before the layout do not need, names stay unbound.
/// After it, a module that held one kernel holds one llvm.func per code
/// version, each with a `mlafix.variant` attribute, and has a
/// `mlafix.signature` attribute.
void buildMlafixPipeline(mlir::OpPassManager &pm,
                         const PipelineOptions &options);

/// Makes the passes, and the pipeline as `mlafix-pipeline{bindings=…
/// target=… machine=…}`, known to the command line.
void registerMlafixPasses();

} // namespace mlafix

#endif // MLAFIX_COMPILER_PIPELINE_H
