//===- CudaDriver.cpp - The CUDA driver, opened at run time ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "CudaDriver.h"

#include "Fork.h"
#include "Status.h"

#include <atomic>
#include <cstdio>
#include <dlfcn.h>
#include <mutex>

using namespace mlafix::runtime;

namespace {

/// The oldest driver that is accepted: that of CUDA 12.0, which is the first to
/// have cuLibraryLoadData.
constexpr int oldestDriver = 12000;
constexpr uint64_t legacyStreams = 1; // CU_GET_PROC_ADDRESS_LEGACY_STREAM

enum Need { Required, Optional };

struct Machine {
  std::mutex mutex;
  bool tried = false;
  bool usable = false;   ///< true if libcuda is open and `driver` is complete
  char reason[256] = ""; ///< why `usable` is false, or ""
  CudaDriver driver;
};

// Constant-initialised and never destroyed, since constructors and destructors
// of other static variables may launch.
Machine machine;

std::atomic<const CudaDriver *> testDriver{nullptr};
/// The initialised driver, or null. Launches read it without a lock.
std::atomic<const CudaDriver *> readyDriver{nullptr};

template <typename... Arguments>
bool giveReason(Machine &m, const char *format, Arguments... arguments) {
  int wanted = std::snprintf(m.reason, sizeof(m.reason), format, arguments...);
  if (wanted >= static_cast<int>(sizeof(m.reason)))
    m.reason[wholeLength(m.reason, sizeof(m.reason) - 1)] = '\0';
  return false;
}

/// Returns the address of a driver function, or null if the driver lacks it.
void *resolve(GetProcAddress getProcAddress, const char *name, int version) {
  void *address = nullptr;
  CUresult result =
      getProcAddress(name, &address, version, legacyStreams, nullptr);
  return result == cuda::success ? address : nullptr;
}

bool open(Machine &m) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return giveReason(m, "%s", dlerror()); // the message names libcuda.so.1
  // Look up only cuGetProcAddress_v2 with dlsym(), since it finds all other
  // functions. It exists since CUDA 12.0. Unlike cuGetProcAddress, it has a
  // parameter for a status.
  auto getProcAddress =
      reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  if (!getProcAddress)
    return giveReason(m, "%s",
                      "expected a CUDA driver for CUDA 12.0 or newer, "
                      "got one without cuGetProcAddress_v2");
  CUresult (*getVersion)(int *) = nullptr;
  int version = 0;
  getVersion = reinterpret_cast<decltype(getVersion)>(
      resolve(getProcAddress, "cuDriverGetVersion", 2020));
  if (!getVersion)
    return giveReason(m, "the CUDA driver has no %s", "cuDriverGetVersion");
  if (getVersion(&version) != cuda::success || version < oldestDriver)
    return giveReason(
        m, "expected a CUDA driver for CUDA 12.0 or newer, got %d.%d",
        version / 1000, version % 1000 / 10);
  if (const char *missing = fillCudaDriver(getProcAddress, m.driver))
    return giveReason(m, "the CUDA driver has no %s", missing);
  return true;
}

/// Opens the driver at the first call. Returns true if it is usable. The caller
/// must hold the mutex.
bool openOnce(Machine &m) {
  if (!m.tried) {
    m.tried = true;
    m.usable = open(m);
  }
  return m.usable;
}

} // namespace

const char *mlafix::runtime::fillCudaDriver(GetProcAddress getProcAddress,
                                            CudaDriver &driver) {
  driver.getProcAddress = getProcAddress;
#define MLAFIX_CUDA_FUNCTION(NAME, VERSION, NEED, ...)                         \
  driver.NAME = reinterpret_cast<decltype(driver.NAME)>(                       \
      resolve(getProcAddress, #NAME, VERSION));                                \
  if (NEED == Required && !driver.NAME)                                        \
    return #NAME;
#include "CudaDriver.def"
  return nullptr;
}

mlafix_status mlafix::runtime::getCudaDriver(const CudaDriver *&driver) {
  driver = testDriver.load(std::memory_order_acquire);
  if (!driver)
    driver = readyDriver.load(std::memory_order_acquire);
  if (driver)
    return MLAFIX_OK;
  Machine &m = machine;
  ForkSafeLock lock(m.mutex);
  if (!openOnce(m))
    return fail(MLAFIX_NO_DRIVER, "no CUDA driver: %s", m.reason);
  // A failure of cuInit() is not remembered, so the next call tries again.
  CUresult result = m.driver.cuInit(0);
  if (result != cuda::success) {
    cudaError(m.driver, "cuInit", result);
    return prefixError(MLAFIX_NO_DRIVER, "no usable CUDA driver: ");
  }
  readyDriver.store(&m.driver, std::memory_order_release);
  driver = &m.driver;
  return MLAFIX_OK;
}

const CudaDriver *mlafix::runtime::getCudaDriverIfLoaded() {
  if (const CudaDriver *driver = testDriver.load(std::memory_order_acquire))
    return driver;
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!library)
    return nullptr;
  dlclose(library); // dlopen() took a reference even with RTLD_NOLOAD
  Machine &m = machine;
  ForkSafeLock lock(m.mutex);
  return openOnce(m) ? &m.driver : nullptr;
}

void mlafix::runtime::setCudaDriverForTesting(const CudaDriver *driver) {
  testDriver.store(driver, std::memory_order_release);
}

mlafix_status mlafix::runtime::cudaError(const CudaDriver &driver,
                                         const char *function,
                                         CUresult result) {
  const char *name = nullptr, *text = nullptr;
  if (driver.cuGetErrorName(result, &name) != cuda::success || !name)
    name = "an unknown error";
  if (driver.cuGetErrorString(result, &text) != cuda::success || !text)
    text = "no description";
  return fail(result == cuda::errorOutOfMemory ? MLAFIX_OUT_OF_MEMORY
                                               : MLAFIX_DRIVER_ERROR,
              "%s returned %s (%d: %s)", function, name, result, text);
}

extern "C" mlafix_status mlafix_cuda_device_count(int32_t *count) noexcept {
  return guarded([&] {
    MLAFIX_TRY(require(count, "count"));
    *count = 0;
    const CudaDriver *driver = nullptr;
    MLAFIX_TRY(getCudaDriver(driver));
    int devices = 0;
    MLAFIX_CUDA_TRY(*driver, cuDeviceGetCount, &devices);
    *count = devices;
    return MLAFIX_OK;
  });
}

extern "C" mlafix_status
mlafix_cuda_function(const char *name, int32_t version,
                     mlafix_cuda_entry *entry) noexcept {
  return guarded([&] {
    MLAFIX_TRY(require(name, "name"));
    MLAFIX_TRY(require(entry, "entry"));
    *entry = nullptr;
    const CudaDriver *driver = nullptr;
    MLAFIX_TRY(getCudaDriver(driver));
    *entry = reinterpret_cast<mlafix_cuda_entry>(
        resolve(driver->getProcAddress, name, version));
    if (!*entry)
      return fail(MLAFIX_NOT_FOUND,
                  "expected a function of the CUDA driver as of CUDA %d.%d, "
                  "got \"%s\", which it does not have",
                  version / 1000, version % 1000 / 10, name);
    return MLAFIX_OK;
  });
}
