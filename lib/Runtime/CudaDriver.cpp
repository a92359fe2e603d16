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

constexpr int oldestDriver = 12000;   // the first with cuLibraryLoadData
constexpr uint64_t legacyStreams = 1; // CU_GET_PROC_ADDRESS_LEGACY_STREAM

using GetProcAddress = CUresult (*)(const char *, void **, int, uint64_t,
                                    int *);

enum Need { Required, Optional };

struct Machine {
  std::mutex mutex;
  bool tried = false;
  bool usable = false;   ///< libcuda is open and `driver` complete
  char reason[256] = ""; ///< why it is not usable
  CudaDriver driver;
};

// Neither made nor destroyed at run time: launches may come from constructors
// and destructors of other static variables.
Machine machine;

std::atomic<const CudaDriver *> testDriver{nullptr};
/// The machine's driver once it is initialised: launches take no lock.
std::atomic<const CudaDriver *> readyDriver{nullptr};

template <typename... Arguments>
bool giveReason(Machine &m, const char *format, Arguments... arguments) {
  int wanted = std::snprintf(m.reason, sizeof(m.reason), format, arguments...);
  if (wanted >= static_cast<int>(sizeof(m.reason)))
    m.reason[wholeLength(m.reason, sizeof(m.reason) - 1)] = '\0';
  return false;
}

template <typename Function>
bool resolve(Machine &m, GetProcAddress getProcAddress, const char *name,
             int version, Need need, Function &slot) {
  void *address = nullptr;
  CUresult result =
      getProcAddress(name, &address, version, legacyStreams, nullptr);
  if (result != cuda::success)
    address = nullptr;
  slot = reinterpret_cast<Function>(address);
  if (!slot && need == Required)
    return giveReason(m, "the CUDA driver has no %s", name);
  return true;
}

bool open(Machine &m) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return giveReason(m, "libcuda.so.1 cannot be opened: %s", dlerror());
  // The one symbol taken by name; _v2 is the form with a status, CUDA 12's.
  auto getProcAddress =
      reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  if (!getProcAddress)
    return giveReason(m, "%s",
                      "expected a CUDA driver for CUDA 12.0 or newer, "
                      "got one without cuGetProcAddress_v2");
  CUresult (*getVersion)(int *) = nullptr;
  int version = 0;
  if (!resolve(m, getProcAddress, "cuDriverGetVersion", 2020, Required,
               getVersion))
    return false;
  if (getVersion(&version) != cuda::success || version < oldestDriver)
    return giveReason(
        m, "expected a CUDA driver for CUDA 12.0 or newer, got %d.%d",
        version / 1000, version % 1000 / 10);
#define MLAFIX_CUDA_FUNCTION(NAME, VERSION, NEED, ...)                         \
  if (!resolve(m, getProcAddress, #NAME, VERSION, NEED, m.driver.NAME))        \
    return false;
#include "CudaDriver.def"
  return true;
}

} // namespace

mlafix_status mlafix::runtime::getCudaDriver(const CudaDriver *&driver) {
  driver = testDriver.load(std::memory_order_acquire);
  if (!driver)
    driver = readyDriver.load(std::memory_order_acquire);
  if (driver)
    return MLAFIX_OK;
  Machine &m = machine;
  ForkSafeLock lock(m.mutex);
  if (!m.tried) {
    m.tried = true;
    m.usable = open(m);
  }
  if (!m.usable)
    return fail(MLAFIX_NO_DRIVER, "no CUDA driver: %s", m.reason);
  // Not remembered when it fails: the next call asks again.
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
  dlclose(library); // RTLD_NOLOAD counts a reference too
  Machine &m = machine;
  ForkSafeLock lock(m.mutex);
  if (!m.tried) {
    m.tried = true;
    m.usable = open(m);
  }
  return m.usable ? &m.driver : nullptr;
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
    if (!count)
      return fail(MLAFIX_INVALID_ARGUMENT,
                  "argument \"count\": expected a pointer, got null");
    *count = 0;
    const CudaDriver *driver = nullptr;
    MLAFIX_TRY(getCudaDriver(driver));
    int devices = 0;
    MLAFIX_CUDA_TRY(*driver, cuDeviceGetCount, &devices);
    *count = devices;
    return MLAFIX_OK;
  });
}
