//===- Targets.h - the closed list of targets -------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The compilation targets that `--target` accepts (mlafix/Targets.def), and
// LLVM's code generator for each. A target is a GPU architecture or a CPU
// baseline. Units list their code under the targets' names
// (docs/UnitFormat.md).
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_LIB_TARGET_TARGETS_H
#define MLAFIX_LIB_TARGET_TARGETS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace mlafix::target {

/// A compilation target.
struct TargetSpec {
  /// The name in options and units, for example "sm_90" or "x86-64-v3".
  llvm::StringRef name;
  /// The architecture in LLVM's triple: "nvptx64", "x86_64" or "aarch64".
  llvm::StringRef architecture;
  /// The compute capability as 10 * major + minor, for example 90 or 121; 0 for
  /// a CPU.
  unsigned capability;

  bool isGPU() const { return capability != 0; }
};

/// Returns all targets, in the order in which units list their code.
llvm::ArrayRef<TargetSpec> allTargets();

/// Returns the target called `name`. The error lists the valid names.
llvm::Expected<const TargetSpec *> lookupTarget(llvm::StringRef name);

/// Returns the distinct targets that `names` stand for, in the order of
/// allTargets(). A name is a target's name, or "cpu" for every CPU target of
/// the architecture that the compiler runs on.
llvm::Expected<std::vector<const TargetSpec *>>
expandTargets(llvm::ArrayRef<std::string> names);

/// Creates LLVM's code generator for `target`. The PTX has the `.version`
/// `ptxVersion` (10 * major + minor). If `ptxVersion` is 0, the PTX has the
/// lowest version that supports the GPU, so that old drivers accept it.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const TargetSpec &target, unsigned ptxVersion = 0);

/// A deleter that returns a code generator to the pool.
struct ReturnMachine {
  unsigned ptxVersion = 0;
  unsigned uses = 1;
  void operator()(llvm::TargetMachine *machine) const;
};

/// Returns a code generator as createTargetMachine() does, for use by one
/// thread at a time. For GPU targets it may come from a pool.
llvm::Expected<std::unique_ptr<llvm::TargetMachine, ReturnMachine>>
leaseTargetMachine(const TargetSpec &target, unsigned ptxVersion);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_TARGETS_H
