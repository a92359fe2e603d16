//===- ManifestChecks.cpp - Launch checks of a kernel, from JSON ----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "ManifestParts.h"

#include <algorithm>

using namespace mlafix;
using namespace mlafix::runtime;

namespace {

struct StepSpec {
  CheckStepKind kind;
  const char *name;
  uint32_t operands;
};

constexpr StepSpec stepSpecs[] = {
    {CheckStepKind::Constant, "constant", 0},
    {CheckStepKind::Size, "size", 0},
    {CheckStepKind::Scalar, "scalar", 0},
#define MLAFIX_CHECK_STEP(KIND, NAME, OPERANDS, VALUE)                         \
  {CheckStepKind::KIND, NAME, OPERANDS},
#include "mlafix/CheckSteps.def"
};

/// A step that reads a size or a scalar.
void parseLeaf(const Value &value, const KernelDesc &kernel, CheckStep &step) {
  if (step.kind == CheckStepKind::Constant) {
    step.value = value.at("value").integer(INT64_MIN, INT64_MAX);
    return;
  }
  auto last = static_cast<int64_t>(kernel.args.size()) - 1;
  step.arg = static_cast<uint32_t>(value.at("arg").integer(0, last));
  const ArgDesc &arg = kernel.args[step.arg];
  if (step.kind == CheckStepKind::Size) {
    if (!arg.isTensor() || arg.ndim() == 0)
      value.at("arg").error("a tensor with dims");
    step.dim = static_cast<uint32_t>(
        value.at("dim").integer(0, int64_t(arg.ndim()) - 1));
  } else if (arg.isTensor() || arg.kind == MLAFIX_ARG_F32) {
    value.at("arg").error("an integer scalar");
  }
}

CheckStep parseStep(const Value &value, const KernelDesc &kernel,
                    int64_t position) {
  CheckStep step;
  std::string name = value.at("op").string();
  auto spec =
      std::find_if(std::begin(stepSpecs), std::end(stepSpecs),
                   [&](const StepSpec &known) { return name == known.name; });
  if (spec == std::end(stepSpecs))
    value.at("op").error("a step that this library knows");
  step.kind = spec->kind;
  if (spec->operands == 0) {
    parseLeaf(value, kernel, step);
    return step;
  }
  uint32_t count = 0;
  value.at("of").each(spec->operands, [&](const Value &operand) {
    step.of[count++] = static_cast<uint32_t>(operand.integer(0, position - 1));
  });
  if (count != spec->operands)
    value.at("of").error(std::to_string(spec->operands) + " steps");
  return step;
}

} // namespace

LaunchCheck mlafix::runtime::parseLaunchCheck(const Value &value,
                                              const KernelDesc &kernel) {
  LaunchCheck check;
  check.text = value.at("text").name();
  value.at("steps").each(limits::checkSteps, [&](const Value &step) {
    check.steps.push_back(
        parseStep(step, kernel, static_cast<int64_t>(check.steps.size())));
  });
  if (check.steps.empty())
    value.at("steps").error("one step or more");
  return check;
}
