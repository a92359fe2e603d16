//===- Targets.cpp - the closed list of targets ---------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Target/Targets.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include <mutex>

using namespace llvm;
using namespace mlafix::target;

static constexpr TargetSpec targets[] = {
#define MLAFIX_GPU_TARGET(CAPABILITY)                                          \
  {"sm_" #CAPABILITY, "nvptx64", CAPABILITY},
#define MLAFIX_CPU_TARGET(NAME, ARCHITECTURE, LEVEL) {NAME, ARCHITECTURE, 0},
#include "mlafix/Targets.def"
};

ArrayRef<TargetSpec> mlafix::target::allTargets() { return targets; }

Expected<const TargetSpec *> mlafix::target::lookupTarget(StringRef name) {
  for (const TargetSpec &target : targets)
    if (target.name == name)
      return &target;
  auto names = map_range(targets, [](const TargetSpec &t) { return t.name; });
  return createStringError(
      "expected a target out of " + join(names.begin(), names.end(), ", ") +
      " or cpu (every level of this machine's architecture), got '" + name +
      "'");
}

Expected<std::vector<const TargetSpec *>>
mlafix::target::expandTargets(ArrayRef<std::string> names) {
  std::vector<const TargetSpec *> result;
  Triple machine(sys::getProcessTriple());
  for (const std::string &name : names) {
    if (name == "cpu") {
      for (const TargetSpec &target : targets)
        if (target.architecture == machine.getArchName())
          result.push_back(&target);
      continue;
    }
    Expected<const TargetSpec *> target = lookupTarget(name);
    if (!target)
      return target.takeError();
    result.push_back(*target);
  }
  // All pointers point into the array of allTargets(), so sorting them by
  // address gives its order.
  llvm::sort(result);
  result.erase(llvm::unique(result), result.end());
  return result;
}

static void initializeBackEnds() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
}

Expected<std::unique_ptr<TargetMachine>>
mlafix::target::createTargetMachine(const TargetSpec &target,
                                    unsigned ptxVersion) {
  initializeBackEnds();
  Triple triple(target.architecture +
                (target.isGPU() ? "-nvidia-cuda" : "-unknown-linux-gnu"));
  std::string error;
  const llvm::Target *backEnd = TargetRegistry::lookupTarget(triple, error);
  if (!backEnd)
    return createStringError("LLVM was built without a code generator for " +
                             triple.str() + ": " + error);
  TargetOptions options;
  // LLVM must not form fused multiply-adds, because the bits of a row would
  // then depend on LLVM's cost model. The lowering creates all fused
  // multiply-adds that are wanted.
  options.AllowFPOpFusion = FPOpFusion::Strict;
  // Without a version, LLVM picks the lowest PTX `.version` that supports the
  // chip.
  std::string features = ptxVersion ? "+ptx" + std::to_string(ptxVersion) : "";
  std::optional<Reloc::Model> reloc;
  std::optional<CodeModel::Model> codeModel;
  if (!target.isGPU()) {
    reloc = Reloc::PIC_;
    codeModel = CodeModel::Small;
  }
  // For x86-64, the target's name (such as "x86-64-v3") is also LLVM's name of
  // the processor. LLVM's name for Armv8.0-A is "generic".
  StringRef chip = triple.isAArch64() ? "generic" : target.name;
  std::unique_ptr<TargetMachine> machine(
      backEnd->createTargetMachine(triple, chip, features, options, reloc,
                                   codeModel, CodeGenOptLevel::Aggressive));
  if (!machine)
    return createStringError("LLVM has no code generator for " + target.name);
  return machine;
}

//===----------------------------------------------------------------------===//
// Pool of code generators
//===----------------------------------------------------------------------===//

using LeasedMachine = std::unique_ptr<TargetMachine, ReturnMachine>;

namespace {
struct MachinePool {
  std::mutex mutex;
  std::vector<LeasedMachine> idle;
};
} // namespace

static MachinePool &machinePool() {
  static MachinePool &made = *new MachinePool;
  return made;
}

Expected<LeasedMachine>
mlafix::target::leaseTargetMachine(const TargetSpec &target,
                                   unsigned ptxVersion) {
  MachinePool &pool = machinePool();
  {
    std::lock_guard<std::mutex> lock(pool.mutex);
    auto known = find_if(pool.idle, [&](const LeasedMachine &machine) {
      return machine->getTargetCPU() == target.name &&
             machine.get_deleter().ptxVersion == ptxVersion;
    });
    if (known != pool.idle.end()) {
      LeasedMachine machine = std::move(*known);
      pool.idle.erase(known);
      ++machine.get_deleter().uses;
      return machine;
    }
  }
  Expected<std::unique_ptr<TargetMachine>> made =
      createTargetMachine(target, ptxVersion);
  if (!made)
    return made.takeError();
  return LeasedMachine(made->release(), {ptxVersion});
}

void ReturnMachine::operator()(TargetMachine *machine) const {
  // A TargetMachine keeps the names of all parameters and sections that it has
  // seen, so that its memory grows. Discard it after a number of uses.
  constexpr unsigned maximalUses = 100;
  constexpr size_t maximalIdle = 8;
  MachinePool &pool = machinePool();
  if (machine->getTargetTriple().isNVPTX() && uses < maximalUses) {
    std::lock_guard<std::mutex> lock(pool.mutex);
    if (pool.idle.size() < maximalIdle) {
      pool.idle.emplace_back(machine, *this);
      return;
    }
  }
  delete machine;
}
