//===- DeviceMemory.cpp - Memory on the device a kernel runs on -----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "DeviceMemory.h"

#include "CudaCode.h"
#include "Status.h"

#include "mlafix/runtime.hpp"

using namespace mlafix;
using namespace mlafix::run;
using namespace mlafix::runtime;

namespace {

/// Runs `body(driver)` with a context of the device current.
template <typename Body>
mlafix_status onDevice(mlafix_device device, Body body) {
  const CudaDriver *driver = nullptr;
  MLAFIX_TRY(getCudaDriver(driver));
  int count = 0;
  MLAFIX_CUDA_TRY(*driver, cuDeviceGetCount, &count);
  if (device.ordinal >= count)
    return fail(MLAFIX_NOT_FOUND,
                "expected a CUDA device cuda:%d, got a machine with %d of them",
                device.ordinal, count);
  ContextScope context(*driver);
  MLAFIX_TRY(context.enter(device.ordinal));
  return body(*driver);
}

CUdeviceptr asDevice(void *address) {
  return reinterpret_cast<uintptr_t>(address);
}

} // namespace

DeviceMemory::DeviceMemory(mlafix_device device, void *bytes, size_t size)
    : device(device), host(bytes), size(size), address(bytes) {
  if (device.type == MLAFIX_CPU)
    return;
  check(onDevice(device, [&](const CudaDriver &driver) {
    CUdeviceptr fresh = 0;
    // An empty tensor still gets an address of its own.
    MLAFIX_CUDA_TRY(driver, cuMemAlloc, &fresh, size ? size : 1);
    address = reinterpret_cast<void *>(static_cast<uintptr_t>(fresh));
    if (size)
      MLAFIX_CUDA_TRY(driver, cuMemcpyHtoD, fresh, host, size);
    return MLAFIX_OK;
  }));
}

DeviceMemory::~DeviceMemory() {
  if (device.type == MLAFIX_CUDA)
    onDevice(device, [&](const CudaDriver &driver) {
      driver.cuMemFree(asDevice(address));
      return MLAFIX_OK;
    });
}

void DeviceMemory::download() {
  if (device.type == MLAFIX_CPU)
    return;
  check(onDevice(device, [&](const CudaDriver &driver) {
    MLAFIX_CUDA_TRY(driver, cuCtxSynchronize);
    if (size)
      MLAFIX_CUDA_TRY(driver, cuMemcpyDtoH, host, asDevice(address), size);
    return MLAFIX_OK;
  }));
}

std::string mlafix::run::targetOf(mlafix_device device) {
  if (device.type == MLAFIX_CPU)
    return "cpu";
  int major = 0, minor = 0;
  check(onDevice(device, [&](const CudaDriver &driver) {
    CUdevice handle = 0;
    MLAFIX_CUDA_TRY(driver, cuDeviceGet, &handle, device.ordinal);
    MLAFIX_CUDA_TRY(driver, cuDeviceGetAttribute, &major,
                    cuda::attributeComputeCapabilityMajor, handle);
    MLAFIX_CUDA_TRY(driver, cuDeviceGetAttribute, &minor,
                    cuda::attributeComputeCapabilityMinor, handle);
    return MLAFIX_OK;
  }));
  return "sm_" + std::to_string(10 * major + minor);
}
