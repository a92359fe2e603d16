//===- Driver.h - The CUDA driver's functions, for the tools ----*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The driver functions that tools need and launches do not: memory, streams,
// graphs, events. Each function is looked up (mlafix_cuda_function) when it is
// first called, so that a tool needs only those that it calls.
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

/// "cuMemAlloc returned CUDA_ERROR_X (2: text)".
std::string describeError(const char *function, CUresult result);
/// Throws mlafix::Error with that text: OUT_OF_MEMORY or DRIVER_ERROR.
[[noreturn]] void throwError(const char *function, CUresult result);

/// Throws mlafix::Error: NO_DRIVER, NOT_FOUND.
mlafix_cuda_entry findFunction(const char *name, int version);

/// A function of the driver. Its first call must not be concurrent.
template <typename... Parameters> class DriverFunction {
public:
  /// `version`: the CUDA version that introduced these parameters (1000 x major
  /// + 10 x minor).
  constexpr DriverFunction(const char *name, int version)
      : name(name), version(version) {}

  /// Throws mlafix::Error if the driver lacks the function or the call fails.
  void operator()(Parameters... arguments) {
    if (CUresult result = call(arguments...))
      throwError(name, result);
  }
  /// Throws mlafix::Error only if the driver lacks the function.
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

/// While in scope, the primary context of device `ordinal` is current. Throws
/// mlafix::Error: NO_DRIVER, NOT_FOUND (no such device), DRIVER_ERROR. The
/// context and its contents live until the process ends.
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
