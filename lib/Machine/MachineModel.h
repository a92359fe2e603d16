//===- MachineModel.h - what the compiler knows of a target -----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Every number by which passes decide and that depends on the target, so that
// it is in one place: MachineModel.def says what each means, in which unit, and
// where it comes from.
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

  /// The model of `target` (mlafix/Targets.def). `overrides` are "NAME=VALUE",
  /// where NAME is a member and VALUE an integer >= 0. An empty target has the
  /// defaults of the table. Error: an invalid target or override.
  static llvm::Expected<MachineModel>
  get(llvm::StringRef target, llvm::ArrayRef<std::string> overrides = {});
};

} // namespace mlafix

#endif // MLAFIX_MACHINE_MACHINEMODEL_H
