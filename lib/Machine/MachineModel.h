//===- MachineModel.h - numbers that describe a target ----------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Collects every target-dependent number that passes use in decisions.
// MachineModel.def states the meaning, the unit and the source of each number.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_MACHINE_MACHINEMODEL_H
#define MLAFIX_MACHINE_MACHINEMODEL_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>

namespace mlafix {

struct MachineModel {
#define MLAFIX_MACHINE_NUMBER(NAME, VALUE, UNIT, MEANING, SOURCE)              \
  int64_t NAME = VALUE;
#include "lib/Machine/MachineModel.def"

  /// Returns the model of `target`, a name of mlafix/Targets.def. An empty name
  /// gives the defaults of MachineModel.def. Each override is "NAME=VALUE",
  /// where NAME is a member and VALUE an integer >= 0. Returns an error if the
  /// target or an override is invalid.
  static llvm::Expected<MachineModel>
  get(llvm::StringRef target, llvm::ArrayRef<std::string> overrides = {});
};

} // namespace mlafix

#endif // MLAFIX_MACHINE_MACHINEMODEL_H
