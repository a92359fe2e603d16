//===- FakeCuda.cpp - A CUDA driver that records calls --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"

#include "CollectiveOrder.h"
#include "CudaCode.h"
#include "LocalMemory.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

using namespace mlafix::runtime;
using namespace mlafix::test;

namespace {

FakeCuda *instance = nullptr;
int contextTags[8];
thread_local CUcontext currentContext = nullptr;
thread_local std::vector<CUcontext> contextStack;

FakeCuda &fake() { return *instance; }

CUresult find(const std::map<std::string, CUresult> &map,
              const std::string &image) {
  for (const auto &entry : map)
    if (image.find(entry.first) != image.npos)
      return entry.second;
  return cuda::success;
}

int ordinalOf(CUcontext context) {
  // `contextTags` has the tags of four primary contexts, then those of four
  // contexts that the user created.
  return static_cast<int>(reinterpret_cast<int *>(context) - contextTags) % 4;
}

// Returns PTX, or the text after the header of a fake cubin. The driver does
// not get the size of the data, so both end with a NUL.
std::string readImage(const void *data) {
  auto *bytes = static_cast<const char *>(data);
  if (std::memcmp(bytes,
                  "\x7f"
                  "ELF",
                  4) == 0)
    return std::string(bytes + 64);
  return std::string(bytes);
}

CUresult fakeInit(unsigned) { return cuda::success; }
CUresult fakeDriverGetVersion(int *version) {
  *version = 13000;
  return cuda::success;
}
CUresult fakeGetErrorName(CUresult result, const char **name) {
  *name = result == cuda::errorNoBinaryForGpu ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
                                              : "CUDA_ERROR_FAKE";
  return cuda::success;
}
CUresult fakeGetErrorString(CUresult, const char **text) {
  *text = "a fake error";
  return cuda::success;
}
CUresult fakeDeviceGetCount(int *count) {
  *count = fake().numDevices;
  return cuda::success;
}
CUresult fakeDeviceGet(CUdevice *device, int ordinal) {
  if (ordinal >= fake().numDevices)
    return 101;
  *device = 100 + ordinal; // a handle that is not the ordinal
  return cuda::success;
}
CUresult fakeDeviceGetAttribute(int *value, int attribute, CUdevice device) {
  if (device < 100)
    return 101;
  switch (attribute) {
  case cuda::attributeComputeCapabilityMajor:
    *value = fake().computeCapability / 10;
    return cuda::success;
  case cuda::attributeComputeCapabilityMinor:
    *value = fake().computeCapability % 10;
    return cuda::success;
  case cuda::attributeMultiprocessorCount:
    *value = fake().multiprocessors;
    return cuda::success;
  case cuda::attributeMemoryClockRate:
    *value = 2619000;
    return cuda::success;
  case cuda::attributeMemoryBusWidth:
    *value = 5120;
    return cuda::success;
  default:
    return cuda::errorInvalidValue;
  }
}

CUresult fakeDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  ++fake().retains;
  *context = fake().primary(device - 100);
  return cuda::success;
}
CUresult fakeDevicePrimaryCtxGetState(CUdevice device, unsigned *flags,
                                      int *active) {
  *flags = 0;
  *active =
      fake().retains > 0 || currentContext == fake().primary(device - 100);
  return cuda::success;
}
CUresult fakeCtxGetCurrent(CUcontext *context) {
  *context = currentContext;
  return cuda::success;
}
CUresult fakeCtxGetDevice(CUdevice *device) {
  ++fake().deviceQuestions;
  if (!currentContext)
    return 201;
  *device = 100 + ordinalOf(currentContext);
  return cuda::success;
}
CUresult fakeCtxPushCurrent(CUcontext context) {
  std::lock_guard<std::mutex> lock(fake().mutex);
  ++fake().pushes;
  contextStack.push_back(currentContext);
  currentContext = context;
  return cuda::success;
}
CUresult fakeCtxPopCurrent(CUcontext *context) {
  std::lock_guard<std::mutex> lock(fake().mutex);
  ++fake().pops;
  *context = currentContext;
  currentContext = contextStack.back();
  contextStack.pop_back();
  return cuda::success;
}
CUresult fakeThreadExchangeStreamCaptureMode(int *mode) {
  std::swap(fake().captureMode, *mode);
  return cuda::success;
}

CUresult fakeLibraryLoadData(CUlibrary *library, const void *data, int *,
                             void **, unsigned, int *, void **, unsigned) {
  std::string image = readImage(data);
  fake().loads.push_back(image);
  fake().loadedInRelaxedMode &= fake().captureMode == cuda::captureModeRelaxed;
  if (CUresult result = find(fake().refused, image))
    return result;
  std::this_thread::sleep_for(
      std::chrono::milliseconds(fake().loadMilliseconds));
  fake().libraries.push_back(
      std::make_unique<FakeCuda::Library>(FakeCuda::Library{image}));
  *library = reinterpret_cast<CUlibrary>(fake().libraries.back().get());
  return cuda::success;
}
CUresult fakeLibraryUnload(CUlibrary) {
  ++fake().unloads;
  return cuda::success;
}
CUresult fakeLibraryGetKernel(CUkernel *kernel, CUlibrary library,
                              const char *name) {
  if (fake().missingEntries.count(name))
    return 500;
  auto &from = *reinterpret_cast<FakeCuda::Library *>(library);
  fake().kernels.push_back(
      std::make_unique<FakeCuda::Kernel>(FakeCuda::Kernel{name, from.image}));
  *kernel = reinterpret_cast<CUkernel>(fake().kernels.back().get());
  return cuda::success;
}
CUresult fakeKernelGetFunction(CUfunction *function, CUkernel kernel) {
  *function = reinterpret_cast<CUfunction>(kernel);
  return find(fake().refusedLazily,
              reinterpret_cast<FakeCuda::Kernel *>(kernel)->image);
}
CUresult fakeKernelGetAttribute(int *value, int, CUkernel, CUdevice) {
  *value = fake().maxThreads;
  return cuda::success;
}
CUresult fakeKernelGetParamInfo(CUkernel, size_t index, size_t *offset,
                                size_t *size) {
  if (index >= fake().paramSizes.size()) {
    ++fake().refusedQuestions;
    return cuda::errorInvalidValue;
  }
  *offset = 8 * index;
  *size = fake().paramSizes[index];
  return cuda::success;
}
CUresult fakeFuncLoad(CUfunction) { return cuda::success; }

CUresult record(CUfunction function, unsigned grid, unsigned block,
                CUstream stream, void **params, bool dependent) {
  std::lock_guard<std::mutex> lock(fake().mutex);
  if (fake().launchResult != cuda::success)
    return fake().launchResult;
  ++fake().numLaunches;
  if (!fake().keepLaunches)
    return cuda::success;
  fake().streamWork.push_back("launch");
  auto &kernel = *reinterpret_cast<FakeCuda::Kernel *>(function);
  FakeCuda::Launch launch;
  launch.entry = kernel.entry;
  launch.image = kernel.image;
  launch.grid = grid;
  launch.block = block;
  launch.stream = stream;
  launch.context = currentContext;
  launch.dependent = dependent;
  for (size_t i = 0; i < fake().paramSizes.size(); ++i) {
    uint64_t value = 0;
    // Only the first slot of a parameter that is a table is recorded.
    std::memcpy(&value, params[i],
                std::min(fake().paramSizes[i], sizeof(value)));
    launch.params.push_back(value);
  }
  fake().launches.push_back(std::move(launch));
  return cuda::success;
}
CUresult fakeLaunchKernel(CUfunction function, unsigned gridX, unsigned,
                          unsigned, unsigned blockX, unsigned, unsigned,
                          unsigned, CUstream stream, void **params, void **) {
  return record(function, gridX, blockX, stream, params, false);
}
CUresult fakeLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                            void **params, void **) {
  bool dependent =
      config->numAttrs == 1 &&
      config->attrs[0].id == cuda::attributeProgrammaticStreamSerialization &&
      config->attrs[0].value.programmaticStreamSerializationAllowed == 1;
  return record(function, config->gridDimX, config->blockDimX, config->hStream,
                params, dependent);
}

CUresult fakePointerGetAttributes(unsigned count, int *attributes,
                                  void **values, CUdeviceptr address) {
  ++fake().pointerQuestions;
  fake().askedInRelaxedMode &= fake().captureMode == cuda::captureModeRelaxed;
  if (fake().pointerResult != cuda::success)
    return fake().pointerResult;
  FakeCuda::Allocation none{0, -2, 0, 0};
  const FakeCuda::Allocation *found = &none;
  uint64_t start = 0;
  for (const auto &entry : fake().allocations)
    if (address >= entry.first && address - entry.first < entry.second.size) {
      found = &entry.second;
      start = entry.first;
    }
  for (unsigned i = 0; i < count; ++i)
    switch (attributes[i]) {
    case cuda::pointerMemoryType:
      *static_cast<unsigned *>(values[i]) = found->memoryType;
      break;
    case cuda::pointerIsManaged:
      *static_cast<int *>(values[i]) = found->managed;
      break;
    case cuda::pointerDeviceOrdinal:
      *static_cast<int *>(values[i]) = found->ordinal;
      break;
    case cuda::pointerRangeStart:
      *static_cast<CUdeviceptr *>(values[i]) = start;
      break;
    case cuda::pointerRangeSize:
      *static_cast<size_t *>(values[i]) = found->size;
      break;
    default:
      return cuda::errorInvalidValue;
    }
  return cuda::success;
}
CUresult fakeMemAlloc(CUdeviceptr *address, size_t size) {
  void *memory = std::malloc(size);
  *address = reinterpret_cast<uintptr_t>(memory);
  fake().allocations[*address] = {size, ordinalOf(currentContext),
                                  cuda::memoryTypeDevice, 0};
  return cuda::success;
}
CUresult fakeMemFree(CUdeviceptr address) {
  fake().allocations.erase(address);
  std::free(reinterpret_cast<void *>(static_cast<uintptr_t>(address)));
  return cuda::success;
}
CUresult fakeMemcpyHtoD(CUdeviceptr to, const void *from, size_t size) {
  std::memcpy(reinterpret_cast<void *>(static_cast<uintptr_t>(to)), from, size);
  return cuda::success;
}
CUresult fakeMemcpyDtoH(void *to, CUdeviceptr from, size_t size) {
  std::memcpy(to, reinterpret_cast<void *>(static_cast<uintptr_t>(from)), size);
  return cuda::success;
}
CUresult fakeCtxSynchronize() { return cuda::success; }

/// Looks up a fake driver function by name, in the runtime's table and among
/// the functions that only the tools call.
CUresult fakeGetProcAddress(const char *name, void **function, int, uint64_t,
                            int *) {
  const CudaDriver &table = fake().table();
  static const std::map<std::string, void *> others = {
      {"cuMemAlloc", reinterpret_cast<void *>(fakeMemAlloc)},
      {"cuMemFree", reinterpret_cast<void *>(fakeMemFree)},
      {"cuMemcpyHtoD", reinterpret_cast<void *>(fakeMemcpyHtoD)},
      {"cuMemcpyDtoH", reinterpret_cast<void *>(fakeMemcpyDtoH)},
      {"cuCtxSynchronize", reinterpret_cast<void *>(fakeCtxSynchronize)},
  };
  *function = nullptr;
#define MLAFIX_CUDA_FUNCTION(NAME, VERSION, NEED, ...)                         \
  if (std::strcmp(name, #NAME) == 0)                                           \
    *function = reinterpret_cast<void *>(table.NAME);
#include "CudaDriver.def"
  if (auto other = others.find(name);
      other != others.end() && fake().hasToolFunctions)
    *function = other->second;
  return *function ? cuda::success : 500; // CUDA_ERROR_NOT_FOUND
}

} // namespace

FakeCuda &mlafix::test::fakeCuda() { return fake(); }

CUcontext &FakeCuda::current() { return currentContext; }

CUcontext FakeCuda::primary(int ordinal) {
  return reinterpret_cast<CUcontext>(&contextTags[ordinal]);
}

CUcontext FakeCuda::own(int ordinal) {
  return reinterpret_cast<CUcontext>(&contextTags[4 + ordinal]);
}

void FakeCuda::rebuildTable() {
  driver = CudaDriver();
  driver.getProcAddress = fakeGetProcAddress;
  driver.cuInit = fakeInit;
  driver.cuDriverGetVersion = fakeDriverGetVersion;
  driver.cuGetErrorName = fakeGetErrorName;
  driver.cuGetErrorString = fakeGetErrorString;
  driver.cuDeviceGetCount = fakeDeviceGetCount;
  driver.cuDeviceGet = fakeDeviceGet;
  driver.cuDeviceGetAttribute = fakeDeviceGetAttribute;
  driver.cuDevicePrimaryCtxRetain = fakeDevicePrimaryCtxRetain;
  driver.cuDevicePrimaryCtxGetState = fakeDevicePrimaryCtxGetState;
  driver.cuCtxGetCurrent = fakeCtxGetCurrent;
  driver.cuCtxGetDevice = fakeCtxGetDevice;
  driver.cuCtxPushCurrent = fakeCtxPushCurrent;
  driver.cuCtxPopCurrent = fakeCtxPopCurrent;
  driver.cuThreadExchangeStreamCaptureMode =
      fakeThreadExchangeStreamCaptureMode;
  driver.cuLibraryLoadData = fakeLibraryLoadData;
  driver.cuLibraryUnload = fakeLibraryUnload;
  driver.cuLibraryGetKernel = fakeLibraryGetKernel;
  driver.cuKernelGetFunction = fakeKernelGetFunction;
  driver.cuKernelGetAttribute = fakeKernelGetAttribute;
  if (hasParamInfo) { // these functions exist since CUDA 12.4
    driver.cuKernelGetParamInfo = fakeKernelGetParamInfo;
    driver.cuFuncLoad = fakeFuncLoad;
  }
  driver.cuLaunchKernel = fakeLaunchKernel;
  driver.cuLaunchKernelEx = fakeLaunchKernelEx;
  addFakeEvents(driver);
  driver.cuPointerGetAttributes = fakePointerGetAttributes;
}

FakeCuda::FakeCuda() {
  instance = this;
  currentContext = nullptr;
  contextStack.clear();
  rebuildTable();
  setCudaDriverForTesting(&driver);
  forgetContextsForTesting();
  forgetOwnersForTesting();
  forgetCollectivesForTesting();
}

FakeCuda::~FakeCuda() {
  setCudaDriverForTesting(nullptr);
  forgetContextsForTesting();
  forgetOwnersForTesting();
  forgetCollectivesForTesting();
  instance = nullptr;
}
