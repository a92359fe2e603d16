//===- Driver.h - The CUDA driver's functions, for the tools ----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// CUDA driver functions that tools need but launches do not: for memory,
// streams, graphs and events. mlafix_cuda_function looks a function up at its
// first call, so a tool also works with a driver that lacks functions which the
// tool does not call.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TOOLS_CUDA_DRIVER_H
#define MLAFIX_TOOLS_CUDA_DRIVER_H

#include "mlafix/CudaTypes.h"
#include "mlafix/runtime.h"

#include <cstddef>
#include <string>

namespace mlafix::tools {

using namespace mlafix::driver;

/// Parses the value of --device: "cpu", "cuda" (the first GPU) or "cuda:N".
/// Throws std::runtime_error for any other text.
mlafix_device parseDevice(const std::string &text);

/// Returns a text such as "cuMemAlloc returned CUDA_ERROR_X (2: text)".
std::string describeError(const char *function, CUresult result);
/// Throws mlafix::Error with the text of describeError(). The status is
/// OUT_OF_MEMORY or DRIVER_ERROR.
[[noreturn]] void throwError(const char *function, CUresult result);

/// Looks up a driver function. Throws mlafix::Error with the status NO_DRIVER
/// or NOT_FOUND.
mlafix_cuda_entry findFunction(const char *name, int version);

/// A function of the driver. No other thread may use it during its first call.
template <typename... Parameters> class DriverFunction {
public:
  /// `version` is the CUDA version that introduced this signature (1000 * major
  /// + 10 * minor).
  constexpr DriverFunction(const char *name, int version)
      : name(name), version(version) {}

  /// Calls the function. Throws mlafix::Error if the driver lacks it or the
  /// call fails.
  void operator()(Parameters... arguments) {
    if (CUresult result = call(arguments...))
      throwError(name, result);
  }
  /// Calls the function and returns its result. Throws mlafix::Error only if
  /// the driver lacks the function.
  CUresult call(Parameters... arguments) {
    if (!function)
      function = reinterpret_cast<Function>(findFunction(name, version));
    return function(arguments...);
  }

private:
  using Function = CUresult (*)(Parameters...);
  const char *name;
  int version;
  Function function = nullptr;
};

/// Makes the primary context of device `ordinal` current while in scope. Throws
/// mlafix::Error with the status NO_DRIVER, NOT_FOUND (the device does not
/// exist) or DRIVER_ERROR. The context and its contents live until the process
/// ends.
class PrimaryContext {
public:
  explicit PrimaryContext(int32_t ordinal);
  PrimaryContext(const PrimaryContext &) = delete;
  PrimaryContext &operator=(const PrimaryContext &) = delete;
  ~PrimaryContext();

  CUdevice device() const { return handle; }

private:
  CUdevice handle = 0;
};

//===----------------------------------------------------------------------===//
// The functions
//===----------------------------------------------------------------------===//

// Devices and contexts
inline DriverFunction<int *> cuDriverGetVersion{"cuDriverGetVersion", 2020};
inline DriverFunction<CUdevice *, int> cuDeviceGet{"cuDeviceGet", 2000};
inline DriverFunction<char *, int, CUdevice> cuDeviceGetName{"cuDeviceGetName",
                                                             2000};
inline DriverFunction<int *, int, CUdevice> cuDeviceGetAttribute{
    "cuDeviceGetAttribute", 2000};
inline DriverFunction<> cuCtxSynchronize{"cuCtxSynchronize", 2000};

// Memory
inline DriverFunction<CUdeviceptr *, size_t> cuMemAlloc{"cuMemAlloc", 3020};
inline DriverFunction<CUdeviceptr> cuMemFree{"cuMemFree", 3020};
inline DriverFunction<size_t *, size_t *> cuMemGetInfo{"cuMemGetInfo", 3020};
inline DriverFunction<CUdeviceptr, const void *, size_t> cuMemcpyHtoD{
    "cuMemcpyHtoD", 3020};
inline DriverFunction<void *, CUdeviceptr, size_t> cuMemcpyDtoH{"cuMemcpyDtoH",
                                                                3020};
inline DriverFunction<CUdeviceptr, CUdeviceptr, size_t, CUstream>
    cuMemcpyDtoDAsync{"cuMemcpyDtoDAsync", 3020};
inline DriverFunction<CUdeviceptr, unsigned char, size_t> cuMemsetD8{
    "cuMemsetD8", 3020};

// Code
inline DriverFunction<CUlibrary *, const void *, int *, void **, unsigned,
                      int *, void **, unsigned>
    cuLibraryLoadData{"cuLibraryLoadData", 12000};
inline DriverFunction<CUkernel *, CUlibrary, const char *> cuLibraryGetKernel{
    "cuLibraryGetKernel", 12000};
inline DriverFunction<const CUlaunchConfig *, CUfunction, void **, void **>
    cuLaunchKernelEx{"cuLaunchKernelEx", 11060};

// Streams, graphs and events
inline DriverFunction<CUstream *, unsigned> cuStreamCreate{"cuStreamCreate",
                                                           2000};
inline DriverFunction<CUstream> cuStreamSynchronize{"cuStreamSynchronize",
                                                    2000};
inline DriverFunction<CUstream, int> cuStreamBeginCapture{
    "cuStreamBeginCapture", 10010};
inline DriverFunction<CUstream, CUgraph *> cuStreamEndCapture{
    "cuStreamEndCapture", 10000};
inline DriverFunction<CUgraphExec *, CUgraph, unsigned long long>
    cuGraphInstantiateWithFlags{"cuGraphInstantiateWithFlags", 11040};
inline DriverFunction<CUgraphExec, CUstream> cuGraphUpload{"cuGraphUpload",
                                                           11010};
inline DriverFunction<CUgraphExec, CUstream> cuGraphLaunch{"cuGraphLaunch",
                                                           10000};
inline DriverFunction<CUgraphExec> cuGraphExecDestroy{"cuGraphExecDestroy",
                                                      10000};
inline DriverFunction<CUgraph> cuGraphDestroy{"cuGraphDestroy", 10000};
inline DriverFunction<CUevent *, unsigned> cuEventCreate{"cuEventCreate", 2000};
inline DriverFunction<CUevent> cuEventDestroy{"cuEventDestroy", 4000};
inline DriverFunction<CUevent, CUstream> cuEventRecord{"cuEventRecord", 2000};
inline DriverFunction<CUevent> cuEventSynchronize{"cuEventSynchronize", 2000};
inline DriverFunction<float *, CUevent, CUevent> cuEventElapsedTime{
    "cuEventElapsedTime", 2000};

} // namespace mlafix::tools

#endif // MLAFIX_TOOLS_CUDA_DRIVER_H
