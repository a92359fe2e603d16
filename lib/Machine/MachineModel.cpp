//===- MachineModel.cpp - numbers that describe a target ------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Machine/MachineModel.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace mlafix;

namespace {
struct Target {
  StringLiteral name;
  int64_t capability; // 0 for CPUs
};
struct Number {
  StringLiteral name;
  int64_t MachineModel::*member;
};
} // namespace

static constexpr Target targets[] = {
#define MLAFIX_GPU_TARGET(CAPABILITY) {"sm_" #CAPABILITY, CAPABILITY},
#define MLAFIX_CPU_TARGET(NAME, ARCHITECTURE, LEVEL) {NAME, 0},
#include "mlafix/Targets.def"
};

static constexpr Number knownNumbers[] = {
#define MLAFIX_MACHINE_NUMBER(NAME, VALUE, UNIT, MEANING, SOURCE)              \
  {#NAME, &MachineModel::NAME},
#include "lib/Machine/MachineModel.def"
};

static MachineModel buildModel(const Target &target) {
  MachineModel model;
#define MLAFIX_MACHINE_SINCE(CAPABILITY, NAME, VALUE, SOURCE)                  \
  if (target.capability >= CAPABILITY)                                         \
    model.NAME = VALUE;
#define MLAFIX_MACHINE_TARGET(TARGET, NAME, VALUE, SOURCE)                     \
  if (target.name == TARGET)                                                   \
    model.NAME = VALUE;
#include "lib/Machine/MachineModel.def"
  return model;
}

template <typename Entry> static std::string listNames(ArrayRef<Entry> table) {
  return join(map_range(table, [](const Entry &e) { return e.name.str(); }),
              ", ");
}

static Error replaceNumber(MachineModel &model, StringRef text) {
  // Use std::tie, because a C++17 lambda cannot capture a structured binding.
  StringRef name, value;
  std::tie(name, value) = text.split('=');
  const Number *number =
      find_if(knownNumbers, [&](const Number &n) { return n.name == name; });
  if (number == std::end(knownNumbers))
    return createStringError("expected NAME=NUMBER with a name out of " +
                             listNames(ArrayRef(knownNumbers)) + ", got '" +
                             name + "'");
  int64_t parsed;
  if (value.getAsInteger(10, parsed) || parsed < 0)
    return createStringError("expected " + name +
                             " to be an integer that is not negative, got '" +
                             value + "'");
  model.*number->member = parsed;
  return Error::success();
}

Expected<MachineModel> MachineModel::get(StringRef target,
                                         ArrayRef<std::string> overrides) {
  MachineModel model;
  if (!target.empty()) {
    const ::Target *known =
        find_if(targets, [&](const ::Target &t) { return t.name == target; });
    if (known == std::end(targets))
      return createStringError("expected a target out of " +
                               listNames(ArrayRef(targets)) + ", got '" +
                               target + "'");
    model = buildModel(*known);
  }
  for (StringRef text : overrides)
    if (Error error = replaceNumber(model, text))
      return error;
  return model;
}
