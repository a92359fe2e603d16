//===- LaunchChecks.cpp - What a kernel assumes of its launches -----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Check.h"

#include <array>
#include <cinttypes>

using namespace mlafix;
using namespace mlafix::runtime;

namespace {

/// A size, 0 of a tensor that was omitted, or a scalar.
int64_t readLeaf(const Call &call, const CheckStep &step) {
  const CallArg &arg = call.args[step.arg];
  if (step.kind == CheckStepKind::Size)
    return arg.hasShape ? arg.sizes[step.dim] : 0;
  auto value = static_cast<int64_t>(arg.scalar);
  return call.desc().args[step.arg].kind == MLAFIX_ARG_I32
             ? static_cast<int32_t>(value)
             : value;
}

int64_t compute(CheckStepKind kind, int64_t x, int64_t y, int64_t z) {
  auto ux = static_cast<uint64_t>(x), uy = static_cast<uint64_t>(y);
  switch (kind) {
#define MLAFIX_CHECK_STEP(KIND, NAME, OPERANDS, VALUE)                         \
  case CheckStepKind::KIND:                                                    \
    return static_cast<int64_t>(VALUE);
#include "mlafix/CheckSteps.def"
  default:
    return 0;
  }
}

bool passes(const Call &call, const LaunchCheck &check) {
  std::array<int64_t, limits::checkSteps> values = {};
  size_t count = 0;
  for (const CheckStep &step : check.steps) {
    int64_t &value = values[count++];
    if (step.kind == CheckStepKind::Constant)
      value = step.value;
    else if (step.isLeaf())
      value = readLeaf(call, step);
    else
      value = compute(step.kind, values[step.of[0]], values[step.of[1]],
                      values[step.of[2]]);
  }
  return values[count - 1] != 0;
}

/// "n = 20, k = 3": what the condition is about, as far as it fits.
struct Numbers {
  Numbers(const Call &call, const LaunchCheck &check) {
    text[0] = '\0';
    size_t used = 0;
    for (const CheckStep &step : check.steps) {
      if (!step.isLeaf() || step.kind == CheckStepKind::Constant)
        continue;
      const ArgDesc &arg = call.desc().args[step.arg];
      bool isSize = step.kind == CheckStepKind::Size;
      bool isNamed = !isSize || !arg.dims[step.dim].empty();
      const std::string &name =
          isSize && isNamed ? arg.dims[step.dim] : arg.name;
      int written =
          std::snprintf(text + used, sizeof(text) - used,
                        "%s%.48s%s = %" PRId64, used ? ", " : "", name.c_str(),
                        isNamed ? "" : ".shape", readLeaf(call, step));
      if (written < 0 || used + size_t(written) >= sizeof(text)) {
        text[used] = '\0';
        return;
      }
      used += size_t(written);
    }
  }
  char text[512];
};

} // namespace

mlafix_status mlafix::runtime::checkConditions(const Call &call) {
  for (const LaunchCheck &check : call.desc().checks)
    if (!passes(call, check))
      return fail(MLAFIX_INVALID_ARGUMENT, "expected %s, got %s",
                  check.text.c_str(), Numbers(call, check).text);
  return MLAFIX_OK;
}
