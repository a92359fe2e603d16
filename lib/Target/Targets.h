//===- Targets.h - the closed list of targets -------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The names that `--target` accepts (mlafix/Targets.def): GPU architectures and
// CPU baselines, by the names under which units list their code
// (docs/UnitFormat.md), and LLVM's code generator for each.
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
  /// The name in options and units: "sm_90", "x86-64-v3".
  llvm::StringRef name;
  /// The architecture in its triple: "nvptx64", "x86_64", "aarch64".
  llvm::StringRef architecture;
  /// Compute capability as 10 * major + minor (90, 103, 121); 0 on CPUs.
  unsigned capability;

  bool isGPU() const { return capability != 0; }
};

/// Every target, in the order in which units list their code.
llvm::ArrayRef<TargetSpec> allTargets();

/// Looks `name` up. The error lists the names that exist.
llvm::Expected<const TargetSpec *> lookupTarget(llvm::StringRef name);

/// Expands `names` (target names, or "cpu" for every CPU target of the
/// architecture that the compiler runs on) to distinct targets in the order of
/// allTargets().
llvm::Expected<std::vector<const TargetSpec *>>
expandTargets(llvm::ArrayRef<std::string> names);

/// Creates LLVM's code generator for `target`. The PTX `.version` is
/// `ptxVersion` (10 * major + minor) or, if that is 0, the lowest that supports
/// the chip, so that old drivers accept the PTX.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const TargetSpec &target, unsigned ptxVersion = 0);

/// Returns a code generator to the pool.
struct ReturnMachine {
  unsigned ptxVersion = 0;
  unsigned uses = 1;
  void operator()(llvm::TargetMachine *machine) const;
};

/// As createTargetMachine(), for one thread at a time. On GPU targets it may be
/// a pooled one.
llvm::Expected<std::unique_ptr<llvm::TargetMachine, ReturnMachine>>
leaseTargetMachine(const TargetSpec &target, unsigned ptxVersion);

} // namespace mlafix::target

#endif // MLAFIX_LIB_TARGET_TARGETS_H
