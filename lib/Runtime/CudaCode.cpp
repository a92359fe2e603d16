//===- CudaCode.cpp - CUDA: contexts, code, launches ----------------------===//
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
#include <array>
#include <atomic>
#include <cstring>

using namespace mlafix::runtime;

//===----------------------------------------------------------------------===//
// Contexts
//===----------------------------------------------------------------------===//

namespace {

/// The primary contexts that this library has retained, one reference per
/// device for the life of the process. Releasing the last reference would
/// destroy a context that graphs and other threads may use. While a reference
/// is held, the handle denotes the same context, so comparing handles suffices
/// to recognise it.
struct RetainedContexts {
  std::mutex mutex; // held while a context is added
  std::array<std::atomic<CUcontext>, numDeviceSlots> contexts{};

  std::atomic<CUcontext> &at(int32_t ordinal) {
    return contexts[1 + static_cast<size_t>(ordinal)];
  }
};

RetainedContexts retained;

mlafix_status retainPrimary(const CudaDriver &driver, int32_t ordinal,
                            CUcontext &context) {
  ForkSafeLock lock(retained.mutex);
  context = retained.at(ordinal).load(std::memory_order_relaxed);
  if (context)
    return MLAFIX_OK;
  CUdevice device = 0;
  MLAFIX_CUDA_TRY(driver, cuDeviceGet, &device, ordinal);
  MLAFIX_CUDA_TRY(driver, cuDevicePrimaryCtxRetain, &context, device);
  retained.at(ordinal).store(context, std::memory_order_release);
  return MLAFIX_OK;
}

} // namespace

void mlafix::runtime::forgetContextsForTesting() {
  for (std::atomic<CUcontext> &context : retained.contexts)
    context = nullptr;
}

mlafix_status ContextScope::enter(int32_t ordinal) {
  CUcontext context = nullptr;
  MLAFIX_CUDA_TRY(driver, cuCtxGetCurrent, &context);
  if (context &&
      context == retained.at(ordinal).load(std::memory_order_acquire))
    return MLAFIX_OK;
  if (context) {
    CUdevice device = 0;
    MLAFIX_CUDA_TRY(driver, cuCtxGetDevice, &device);
    CUdevice wanted = 0;
    MLAFIX_CUDA_TRY(driver, cuDeviceGet, &wanted, ordinal);
    if (device == wanted)
      return MLAFIX_OK;
  }
  MLAFIX_TRY(retainPrimary(driver, ordinal, context));
  MLAFIX_CUDA_TRY(driver, cuCtxPushCurrent, context);
  pushed = true;
  return MLAFIX_OK;
}

mlafix_status mlafix::runtime::retainActivePrimary(const CudaDriver &driver,
                                                   int32_t ordinal) {
  CUdevice device = 0;
  unsigned flags = 0;
  int active = 0;
  MLAFIX_CUDA_TRY(driver, cuDeviceGet, &device, ordinal);
  MLAFIX_CUDA_TRY(driver, cuDevicePrimaryCtxGetState, device, &flags, &active);
  CUcontext context = nullptr;
  return active ? retainPrimary(driver, ordinal, context) : MLAFIX_OK;
}

ContextScope::~ContextScope() {
  CUcontext popped = nullptr;
  if (pushed)
    driver.cuCtxPopCurrent(&popped);
}

//===----------------------------------------------------------------------===//
// Choosing and loading an image
//===----------------------------------------------------------------------===//

namespace {

struct DeviceProperties {
  CUdevice device = 0;
  int computeCapability = 0;
  int multiprocessors = 1;
  int64_t bandwidth = 0; ///< memory bandwidth in bytes/s; 0: unknown
};

/// Returns the memory bandwidth in bytes per second, or 0 if the driver does
/// not report it. The memory transfers two words per clock cycle.
int64_t readBandwidth(const CudaDriver &driver, CUdevice device) {
  int kilohertz = 0, bits = 0;
  bool isKnown =
      driver.cuDeviceGetAttribute(&kilohertz, cuda::attributeMemoryClockRate,
                                  device) == cuda::success &&
      driver.cuDeviceGetAttribute(&bits, cuda::attributeMemoryBusWidth,
                                  device) == cuda::success;
  return isKnown ? int64_t(2) * 1000 * kilohertz * (bits / 8) : 0;
}

mlafix_status readDevice(const CudaDriver &driver, int32_t ordinal,
                         DeviceProperties &facts) {
  int count = 0;
  MLAFIX_CUDA_TRY(driver, cuDeviceGetCount, &count);
  if (ordinal >= count)
    return fail(MLAFIX_NOT_FOUND,
                "expected a CUDA device cuda:%d, got a machine with %d of them",
                ordinal, count);
  MLAFIX_CUDA_TRY(driver, cuDeviceGet, &facts.device, ordinal);
  int major = 0, minor = 0;
  MLAFIX_CUDA_TRY(driver, cuDeviceGetAttribute, &major,
                  cuda::attributeComputeCapabilityMajor, facts.device);
  MLAFIX_CUDA_TRY(driver, cuDeviceGetAttribute, &minor,
                  cuda::attributeComputeCapabilityMinor, facts.device);
  MLAFIX_CUDA_TRY(driver, cuDeviceGetAttribute, &facts.multiprocessors,
                  cuda::attributeMultiprocessorCount, facts.device);
  facts.computeCapability = 10 * major + minor;
  facts.bandwidth = readBandwidth(driver, facts.device);
  return MLAFIX_OK;
}

/// Returns true if the next image should be tried after this driver error.
bool isRefusal(CUresult result) {
  switch (result) {
  case cuda::errorInvalidImage:
  case cuda::errorNoBinaryForGpu:
  case cuda::errorInvalidPtx:
  case cuda::errorUnsupportedPtxVersion:
  case cuda::errorJitCompilerNotFound:
  case cuda::errorJitCompilationDisabled:
    return true;
  default:
    return false;
  }
}

const char *formatName(const Image &image) {
  return image.format == Image::Cubin ? "cubin" : "PTX";
}

CUresult loadLibrary(const CudaDriver &driver, const mlafix_unit &unit,
                     const Image &image, CUlibrary &library) {
  const uint8_t *bytes = unit.bytes.data() + image.offset;
  // Copy the image to an aligned buffer, with a NUL after it. The driver reads
  // PTX up to a NUL, which the file may lack. The driver also needs aligned
  // cubins, but the buffer that holds the file may not be aligned.
  std::vector<uint64_t> copy(image.size / sizeof(uint64_t) + 1);
  std::memcpy(copy.data(), bytes, image.size);
  return driver.cuLibraryLoadData(&library, copy.data(), nullptr, nullptr, 0,
                                  nullptr, nullptr, 0);
}

/// Compares what the manifest says about an entry with what the driver says.
mlafix_status checkEntry(const CudaDriver &driver,
                         const DeviceProperties &facts,
                         const CodeVersion &variant, CUkernel kernel) {
  int maxThreads = 0;
  MLAFIX_CUDA_TRY(driver, cuKernelGetAttribute, &maxThreads,
                  cuda::attributeMaxThreadsPerBlock, kernel, facts.device);
  if (variant.geometry.threads > maxThreads)
    return fail(MLAFIX_BAD_UNIT,
                "entry \"%s\": expected blocks of at most %d threads, as its "
                "code says, got %lld in the manifest",
                variant.entry.c_str(), maxThreads,
                static_cast<long long>(variant.geometry.threads));
  if (!driver.cuKernelGetParamInfo)
    return MLAFIX_OK; // the driver is older than CUDA 12.4
  size_t offset = 0, size = 0, count = variant.params.size();
  for (size_t i = 0; i < count; ++i) {
    if (driver.cuKernelGetParamInfo(kernel, i, &offset, &size) != cuda::success)
      return fail(MLAFIX_BAD_UNIT,
                  "entry \"%s\": expected %zu parameters, as in the manifest, "
                  "got code with %zu",
                  variant.entry.c_str(), count, i);
    if (size != variant.params[i].bytes)
      return fail(MLAFIX_BAD_UNIT,
                  "entry \"%s\", parameter %zu: expected %u bytes, as in the "
                  "manifest, got code that takes %zu",
                  variant.entry.c_str(), i, variant.params[i].bytes, size);
  }
  // Do not check that the code has no further parameters. If it has none, the
  // driver answers the query with an error, which compute-sanitizer and
  // debuggers show to users.
  return MLAFIX_OK;
}

/// Fills in the entries of all code versions. Sets `result` to the driver's
/// error, if there is one: with lazy loading, the driver may reject an image
/// only here.
mlafix_status getEntries(const CudaDriver &driver,
                         const DeviceProperties &facts, CUlibrary library,
                         PreparedKernel &prepared, CUresult &result) {
  for (const CodeVersion &variant : prepared.code->variants) {
    CUkernel kernel = nullptr;
    result = driver.cuLibraryGetKernel(&kernel, library, variant.entry.c_str());
    if (result != cuda::success) {
      cudaError(driver, "cuLibraryGetKernel", result);
      return prefixError(MLAFIX_BAD_UNIT,
                         "expected entry \"%s\" in the image, but ",
                         variant.entry.c_str());
    }
    // Load the code now. Lazy loading at the first launch would allocate
    // memory, which fails during stream capture.
    CUfunction function = nullptr;
    result = driver.cuKernelGetFunction(&function, kernel);
    if (result != cuda::success)
      return cudaError(driver, "cuKernelGetFunction", result);
    if (driver.cuFuncLoad)
      result = driver.cuFuncLoad(function);
    if (result != cuda::success)
      return cudaError(driver, "cuFuncLoad", result);
    MLAFIX_TRY(checkEntry(driver, facts, variant, kernel));
    prepared.entries.push_back(kernel);
  }
  return MLAFIX_OK;
}

/// Loads an image, unless it is loaded already, and gets its entries.
mlafix_status tryImage(const CudaDriver &driver, const DeviceProperties &facts,
                       mlafix_unit &unit, int32_t ordinal,
                       PreparedKernel &prepared, CUresult &result) {
  const Image &image = *prepared.image;
  std::pair<size_t, uint64_t> key(1 + static_cast<size_t>(ordinal),
                                  image.offset);
  auto known = unit.libraries.find(key);
  CUlibrary library = nullptr;
  result = cuda::success;
  if (known != unit.libraries.end())
    library = known->second;
  else
    result = loadLibrary(driver, unit, image, library);
  if (result != cuda::success)
    return cudaError(driver, "cuLibraryLoadData", result);
  prepared.entries.clear();
  mlafix_status status = getEntries(driver, facts, library, prepared, result);
  if (known != unit.libraries.end())
    return status;
  if (status == MLAFIX_OK)
    unit.libraries.emplace(key, library);
  else
    driver.cuLibraryUnload(library);
  return status;
}

} // namespace

mlafix_status mlafix::runtime::readComputeCapability(const CudaDriver &driver,
                                                     int32_t ordinal,
                                                     int &computeCapability) {
  DeviceProperties facts;
  MLAFIX_TRY(readDevice(driver, ordinal, facts));
  computeCapability = facts.computeCapability;
  return MLAFIX_OK;
}

std::vector<Candidate> mlafix::runtime::rankImages(const KernelDesc &kernel,
                                                   int computeCapability) {
  std::vector<const TargetCode *> targets;
  for (const TargetCode &code : kernel.code)
    if (!code.isCpu() && code.computeCapability <= computeCapability)
      targets.push_back(&code);
  std::sort(targets.begin(), targets.end(),
            [](const TargetCode *a, const TargetCode *b) {
              return a->computeCapability > b->computeCapability;
            });
  std::vector<Candidate> candidates;
  for (const TargetCode *code : targets) {
    bool sameMajor = code->computeCapability / 10 == computeCapability / 10;
    for (const Image &image : code->images)
      if (image.format == Image::Cubin && sameMajor)
        candidates.push_back({code, &image});
    for (const Image &image : code->images)
      if (image.format == Image::Ptx)
        candidates.push_back({code, &image});
  }
  return candidates;
}

mlafix_status mlafix::runtime::prepareOnCuda(mlafix_unit &unit,
                                             const KernelDesc &kernel,
                                             int32_t ordinal,
                                             PreparedKernel &prepared) {
  const CudaDriver *found = nullptr;
  MLAFIX_TRY(getCudaDriver(found));
  const CudaDriver &driver = *found;
  DeviceProperties facts;
  MLAFIX_TRY(readDevice(driver, ordinal, facts));
  ContextScope context(driver);
  MLAFIX_TRY(context.enter(ordinal));
  MLAFIX_TRY(retainActivePrimary(driver, ordinal));
  RelaxedCapture relaxed(driver);
  prepared.multiprocessors = facts.multiprocessors;
  prepared.bandwidth = facts.bandwidth;

  std::string tried;
  for (const Candidate &candidate :
       rankImages(kernel, facts.computeCapability)) {
    const Image &image = *candidate.image;
    prepared.code = candidate.code;
    prepared.image = &image;
    CUresult result = cuda::success;
    mlafix_status status =
        tryImage(driver, facts, unit, ordinal, prepared, result);
    if (status == MLAFIX_OK || !isRefusal(result))
      return status;
    log(MLAFIX_LOG_INFO, "the driver refuses the %s for %s: %s",
        formatName(image), candidate.code->target.c_str(), mlafix_last_error());
    tried += std::string(tried.empty() ? "" : "; ") + formatName(image) +
             " for " + candidate.code->target + ": " + mlafix_last_error();
  }
  if (!tried.empty())
    return fail(MLAFIX_NO_IMAGE,
                "expected an image that the driver takes on cuda:%d (sm_%d), "
                "got only refusals: %s; compile the unit for this GPU and "
                "driver",
                ordinal, facts.computeCapability, tried.c_str());
  std::string held;
  for (const TargetCode &code : kernel.code)
    held += (held.empty() ? "" : ", ") + code.target;
  return fail(MLAFIX_NO_IMAGE,
              "expected code that cuda:%d (sm_%d) runs, got code for %s; "
              "compile the unit for this GPU",
              ordinal, facts.computeCapability,
              held.empty() ? "no target" : held.c_str());
}

//===----------------------------------------------------------------------===//
// Launching
//===----------------------------------------------------------------------===//

mlafix_status mlafix::runtime::launchOnCuda(const CudaDriver &driver,
                                            const CudaLaunch &launch,
                                            void *stream) {
  // The driver accepts a CUkernel wherever it expects a CUfunction.
  auto handle = static_cast<CUfunction>(launch.function);
  auto cuStream = static_cast<CUstream>(stream);
  if (!launch.dependent) {
    MLAFIX_CUDA_TRY(driver, cuLaunchKernel, handle, launch.blocks, 1, 1,
                    launch.threads, 1, 1, 0, cuStream, launch.params, nullptr);
    return MLAFIX_OK;
  }
  CUlaunchAttribute attribute = {};
  attribute.id = cuda::attributeProgrammaticStreamSerialization;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config = {
      launch.blocks, 1, 1, launch.threads, 1, 1, 0, cuStream, &attribute, 1};
  MLAFIX_CUDA_TRY(driver, cuLaunchKernelEx, &config, handle, launch.params,
                  nullptr);
  return MLAFIX_OK;
}
