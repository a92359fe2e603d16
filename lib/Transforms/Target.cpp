//===- Target.cpp - what the passes know of a target -*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Target.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

StringRef mlafix::getTarget(Operation *op) {
  auto module =
      isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  auto target =
      module ? module->getAttrOfType<StringAttr>(kTargetAttr) : StringAttr();
  return target ? target.getValue() : StringRef();
}

bool mlafix::hasFp8Conversion(StringRef target) {
  unsigned capability = 0;
  target.consume_front("sm_");
  return !target.getAsInteger(10, capability) && capability >= 89;
}

int64_t mlafix::getThreadsPerMultiprocessor(StringRef target) {
  return llvm::StringSwitch<int64_t>(target)
      .Case("sm_75", 1024)
      .Cases({"sm_86", "sm_87", "sm_88", "sm_89", "sm_110", "sm_120", "sm_121"},
             1536)
      .Default(2048);
}

/// 90 for "sm_90"; 0 for what is no GPU.
static unsigned getCapability(StringRef target) {
  unsigned capability = 0;
  if (!target.consume_front("sm_") || target.getAsInteger(10, capability))
    return 0;
  return capability;
}

int64_t mlafix::getAccessBytes(StringRef target) {
  return getCapability(target) >= 100 ? 32 : 16;
}

bool mlafix::hasWideRegisters(StringRef target) {
  return target == "x86-64-v4";
}

bool mlafix::hasDependentLaunch(StringRef target) {
  return getCapability(target) >= 90;
}
