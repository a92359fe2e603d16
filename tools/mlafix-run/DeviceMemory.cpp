//===- DeviceMemory.cpp - Memory on the device a kernel runs on -----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "DeviceMemory.h"

#include "cuda/Driver.h"

#include "mlafix/runtime.hpp"

#include <cstdint>

using namespace mlafix;
using namespace mlafix::run;
using namespace mlafix::tools;

static CUdeviceptr asDevice(void *address) {
  return reinterpret_cast<uintptr_t>(address);
}

DeviceMemory::DeviceMemory(mlafix_device device, void *bytes, size_t size)
    : device(device), host(bytes), size(size), address(bytes) {
  if (device.type == MLAFIX_CPU)
    return;
  PrimaryContext context(device.ordinal);
  CUdeviceptr fresh = 0;
  // Allocate at least one byte, so that an empty tensor gets its own address.
  cuMemAlloc(&fresh, size ? size : 1);
  address = reinterpret_cast<void *>(static_cast<uintptr_t>(fresh));
  if (size)
    cuMemcpyHtoD(fresh, host, size);
}

DeviceMemory::~DeviceMemory() {
  if (device.type == MLAFIX_CPU)
    return;
  try {
    PrimaryContext context(device.ordinal);
    cuMemFree.call(asDevice(address));
  } catch (const Error &) {
    // cuMemFree fails if a launch has failed before. That failure has been
    // reported, so ignore this one.
  }
}

void DeviceMemory::download() {
  if (device.type == MLAFIX_CPU)
    return;
  PrimaryContext context(device.ordinal);
  cuCtxSynchronize();
  if (size)
    cuMemcpyDtoH(host, asDevice(address), size);
}

std::string mlafix::run::targetOf(mlafix_device device) {
  if (device.type == MLAFIX_CPU)
    return "cpu";
  char name[MLAFIX_MAX_TARGET_NAME];
  check(mlafix_device_target(device, name, sizeof(name)));
  return name;
}
