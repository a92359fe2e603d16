//===- DeviceTarget.cpp - Which target a device runs best -----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "CudaCode.h"
#include "Status.h"
#include "Unit.h"

#include <cstdio>
#include <sys/utsname.h>

using namespace mlafix::runtime;

extern "C" mlafix_status mlafix_device_target(mlafix_device device, char *name,
                                              size_t capacity) noexcept {
  return guarded([&] {
    if (!name || capacity < MLAFIX_MAX_TARGET_NAME)
      return fail(MLAFIX_INVALID_ARGUMENT,
                  "argument \"name\": expected a buffer of at least %d bytes, "
                  "got %s",
                  MLAFIX_MAX_TARGET_NAME, name ? "a smaller one" : "null");
    size_t slot = 0;
    MLAFIX_TRY(deviceSlot(device, slot));
    if (device.type == MLAFIX_CPU) {
      const char *target = cpuTargetName();
      if (!target) {
        utsname system = {};
        uname(&system);
        return fail(MLAFIX_NO_IMAGE,
                    "expected an x86-64 or AArch64 CPU, got \"%s\"",
                    system.machine);
      }
      std::snprintf(name, capacity, "%s", target);
      return MLAFIX_OK;
    }
    const CudaDriver *driver = nullptr;
    MLAFIX_TRY(getCudaDriver(driver));
    int capability = 0;
    MLAFIX_TRY(readComputeCapability(*driver, device.ordinal, capability));
    std::snprintf(name, capacity, "sm_%d", capability);
    return MLAFIX_OK;
  });
}
