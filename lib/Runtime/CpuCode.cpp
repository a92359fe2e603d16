//===- CpuCode.cpp - CPU code: choosing and mapping it --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Environment.h"
#include "Fork.h"
#include "Status.h"
#include "Unit.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlafix::runtime;

namespace {

constexpr struct {
  const char *target, *architecture;
  int level;

  bool isHere() const {
    return std::strcmp(architecture, machineArchitecture) == 0;
  }
} cpuTargets[] = {
#define MLAFIX_CPU_TARGET(NAME, ARCHITECTURE, LEVEL)                           \
  {NAME, ARCHITECTURE, LEVEL},
#include "mlafix/Targets.def"
};

Lazy<int> knownLevel;

/// Returns the level of CPU code to use: that of this machine, or a lower one
/// that the user selects.
int allowedLevel() {
  int machine = knownLevel.get(machineLevel);
  int asked = cpuLevelOf(environment().cpuTarget);
  return asked < 0 ? machine : std::min(machine, asked);
}

} // namespace

bool mlafix::runtime::isCpuTarget(const std::string &target) {
  return std::any_of(std::begin(cpuTargets), std::end(cpuTargets),
                     [&](const auto &known) { return target == known.target; });
}

int mlafix::runtime::cpuLevelOf(const std::string &target) {
  for (const auto &known : cpuTargets)
    if (target == known.target && known.isHere())
      return known.level;
  return -1;
}

const char *mlafix::runtime::cpuTargetName() {
  int level = allowedLevel();
  for (const auto &known : cpuTargets)
    if (known.isHere() && known.level <= level)
      return known.target;
  return nullptr;
}

CodeMapping::~CodeMapping() {
  if (base)
    munmap(base, bytes);
}

mlafix_status CodeMapping::map(const uint8_t *image, size_t size) {
  auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size_t whole = (size + page - 1) / page * page;
  void *memory = mmap(nullptr, whole, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return fail(MLAFIX_OUT_OF_MEMORY, "cannot map %zu bytes for CPU code: %s",
                whole, std::strerror(errno));
  std::memcpy(memory, image, size);
  // An Arm processor does not notice by itself that instructions in memory have
  // changed, so clear its instruction cache.
  auto *begin = static_cast<char *>(memory);
  __builtin___clear_cache(begin, begin + size);
  // The memory is never writable and executable at the same time.
  if (mprotect(memory, whole, PROT_READ | PROT_EXEC) != 0) {
    int error = errno;
    munmap(memory, whole);
    return fail(MLAFIX_INTERNAL_ERROR,
                "cannot make CPU code executable (does the system forbid it?): "
                "%s",
                std::strerror(error));
  }
  base = memory;
  bytes = whole;
  return MLAFIX_OK;
}

mlafix_status mlafix::runtime::chooseCpuCode(const KernelDesc &kernel,
                                             const TargetCode *&chosen) {
  int level = allowedLevel();
  chosen = nullptr;
  std::string held;
  for (const TargetCode &code : kernel.code) {
    held += (held.empty() ? "" : ", ") + code.target;
    if (code.isCpu() && code.cpuLevel >= 0 && code.cpuLevel <= level &&
        (!chosen || code.cpuLevel > chosen->cpuLevel))
      chosen = &code;
  }
  if (chosen)
    return MLAFIX_OK;
  const char *name = cpuTargetName();
  return fail(MLAFIX_NO_IMAGE, "expected code for this CPU (%s%s), got %s%s",
              name ? name : "which is neither x86-64 nor AArch64",
              level > 0 ? " or a lower level" : "",
              held.empty() ? "none" : held.c_str(),
              name ? "; compile the unit for this CPU" : "");
}

mlafix_status mlafix::runtime::prepareOnCpu(mlafix_unit &unit,
                                            const KernelDesc &kernel,
                                            PreparedKernel &prepared) {
  MLAFIX_TRY(chooseCpuCode(kernel, prepared.code));
  (void)lastCacheBytes(); // Reads system files now, not in a launch.
  const Image &image = prepared.code->images.front();
  prepared.image = &image;
  auto inserted = unit.mappings.try_emplace(image.offset);
  CodeMapping &mapping = inserted.first->second;
  if (inserted.second) {
    mlafix_status status =
        mapping.map(unit.bytes.data() + image.offset, image.size);
    if (status != MLAFIX_OK) {
      unit.mappings.erase(inserted.first);
      return status;
    }
  }
  for (const CodeVersion &variant : prepared.code->variants)
    prepared.entries.push_back(mapping.at(variant.offset));
  return MLAFIX_OK;
}
