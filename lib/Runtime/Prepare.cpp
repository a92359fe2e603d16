//===- Prepare.cpp - Making a unit's code ready on a device ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "CudaCode.h"
#include "Fork.h"
#include "Status.h"
#include "Unit.h"

#include <algorithm>
#include <cstdio>
#include <sys/utsname.h>

using namespace mlafix::runtime;

DeviceName::DeviceName(mlafix_device device) {
  if (device.type == MLAFIX_CUDA)
    std::snprintf(text, sizeof(text), "cuda:%d", device.ordinal);
  else if (device.type == MLAFIX_CPU)
    std::snprintf(text, sizeof(text), "cpu");
  else
    std::snprintf(text, sizeof(text), "type %d", device.type);
}

/// The value of findSlot() for an invalid device.
static constexpr size_t noSlot = numDeviceSlots;
static constexpr int32_t lastOrdinal = static_cast<int32_t>(numDeviceSlots) - 2;

static size_t findSlot(mlafix_device device) {
  if (device.type == MLAFIX_CPU)
    return device.ordinal == 0 ? 0 : noSlot;
  return device.type == MLAFIX_CUDA && device.ordinal >= 0 &&
                 device.ordinal <= lastOrdinal
             ? 1 + static_cast<size_t>(device.ordinal)
             : noSlot;
}

mlafix_status mlafix::runtime::deviceSlot(mlafix_device device, size_t &slot) {
  slot = findSlot(device);
  if (slot != noSlot)
    return MLAFIX_OK;
  if (device.type != MLAFIX_CPU && device.type != MLAFIX_CUDA)
    return fail(MLAFIX_INVALID_ARGUMENT,
                "argument \"device\": expected type %d (cpu) or %d (cuda), got "
                "%d",
                MLAFIX_CPU, MLAFIX_CUDA, device.type);
  return fail(MLAFIX_INVALID_ARGUMENT,
              "argument \"device\": expected an ordinal from 0 to %d, got %d",
              device.type == MLAFIX_CPU ? 0 : lastOrdinal, device.ordinal);
}

const PreparedKernel *
mlafix::runtime::preparedKernel(const mlafix_kernel &kernel,
                                mlafix_device device) {
  size_t slot = findSlot(device);
  return slot == noSlot ? nullptr
                        : kernel.prepared[slot].load(std::memory_order_acquire);
}

mlafix_status mlafix::runtime::prepareKernel(const mlafix_kernel &kernel,
                                             mlafix_device device,
                                             const PreparedKernel *&prepared) {
  size_t slot = 0;
  MLAFIX_TRY(deviceSlot(device, slot));
  prepared = kernel.prepared[slot].load(std::memory_order_acquire);
  if (prepared)
    return MLAFIX_OK;

  mlafix_unit &unit = *kernel.unit;
  ForkSafeLock lock(unit.mutex);
  // Another thread may have prepared the kernel meanwhile.
  prepared = kernel.prepared[slot].load(std::memory_order_acquire);
  if (prepared)
    return MLAFIX_OK;
  auto fresh = std::make_unique<PreparedKernel>();
  mlafix_status status =
      slot == 0 ? prepareOnCpu(unit, *kernel.desc, *fresh)
                : prepareOnCuda(unit, *kernel.desc, device.ordinal, *fresh);
  if (status != MLAFIX_OK)
    return prefixError(status, "kernel \"%s\": ", kernel.desc->name.c_str());
  log(MLAFIX_LOG_INFO, "kernel \"%s\" [%s] runs code for %s on %s",
      kernel.desc->name.c_str(), kernel.desc->bindingsText.c_str(),
      fresh->code->target.c_str(), DeviceName(device).text);
  unit.preparedOwned.push_back(std::move(fresh));
  prepared = unit.preparedOwned.back().get();
  // The kernel is const for callers, but its cache of prepared code may change.
  const_cast<mlafix_kernel &>(kernel).prepared[slot].store(
      prepared, std::memory_order_release);
  return MLAFIX_OK;
}

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

extern "C" mlafix_status mlafix_unit_prepare(mlafix_unit *unit,
                                             mlafix_device device) noexcept {
  return guarded([&] {
    MLAFIX_TRY(require(unit, "unit", "a unit"));
    size_t slot = 0;
    MLAFIX_TRY(deviceSlot(device, slot));
    bool any = unit->kernels.empty();
    mlafix_status noImage = MLAFIX_OK;
    for (const mlafix_kernel &kernel : unit->kernels) {
      const PreparedKernel *prepared = nullptr;
      mlafix_status status = prepareKernel(kernel, device, prepared);
      if (status == MLAFIX_OK)
        any = true;
      else if (status == MLAFIX_NO_IMAGE)
        noImage = status; // its message stays the thread's last error
      else
        return status;
    }
    return any ? MLAFIX_OK : noImage;
  });
}

extern "C" mlafix_status mlafix_unit_unload(mlafix_unit *unit,
                                            mlafix_device device) noexcept {
  return guarded([&] {
    MLAFIX_TRY(require(unit, "unit", "a unit"));
    size_t slot = 0;
    MLAFIX_TRY(deviceSlot(device, slot));
    ForkSafeLock lock(unit->mutex);
    for (mlafix_kernel &kernel : unit->kernels) {
      const PreparedKernel *old = kernel.prepared[slot].exchange(nullptr);
      auto &owned = unit->preparedOwned;
      owned.erase(std::remove_if(owned.begin(), owned.end(),
                                 [&](auto &p) { return p.get() == old; }),
                  owned.end());
    }
    if (slot == 0) {
      unit->mappings.clear();
      return MLAFIX_OK;
    }
    auto &libraries = unit->libraries;
    auto library = libraries.lower_bound({slot, 0});
    while (library != libraries.end() && library->first.first == slot) {
      const CudaDriver *driver = nullptr;
      MLAFIX_TRY(getCudaDriver(driver));
      CUlibrary handle = library->second;
      library = libraries.erase(library);
      MLAFIX_CUDA_TRY(*driver, cuLibraryUnload, handle);
    }
    return MLAFIX_OK;
  });
}
