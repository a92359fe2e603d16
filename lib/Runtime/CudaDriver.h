//===- CudaDriver.h - The CUDA driver, opened at run time -------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The few types and values of the driver API that the runtime uses, under the
// driver's own names, and the table of its functions. No CUDA header is needed;
// the values are the driver's ABI and never change.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_CUDADRIVER_H
#define MLAFIX_RUNTIME_CUDADRIVER_H

#include "mlafix/runtime.h"

#include <cstddef>
#include <cstdint>

namespace mlafix::runtime {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st *;
using CUlibrary = struct CUlib_st *;
using CUkernel = struct CUkern_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = struct CUstream_st *;
using CUgraph = struct CUgraph_st *;
using CUgraphExec = struct CUgraphExec_st *;
using CUevent = struct CUevent_st *;

namespace cuda {
// CUresult
constexpr CUresult success = 0;
constexpr CUresult errorInvalidValue = 1;
constexpr CUresult errorOutOfMemory = 2;
constexpr CUresult errorNoDevice = 100;
constexpr CUresult errorInvalidImage = 200;
constexpr CUresult errorNoBinaryForGpu = 209;
constexpr CUresult errorInvalidPtx = 218;
constexpr CUresult errorJitCompilerNotFound = 221;
constexpr CUresult errorUnsupportedPtxVersion = 222;
constexpr CUresult errorJitCompilationDisabled = 223;
// CUdevice_attribute
constexpr int attributeMultiprocessorCount = 16;
constexpr int attributeL2CacheSize = 38;
constexpr int attributeComputeCapabilityMajor = 75;
constexpr int attributeComputeCapabilityMinor = 76;
// CUfunction_attribute
constexpr int attributeMaxThreadsPerBlock = 0;
// CUstreamCaptureMode
constexpr int captureModeRelaxed = 2;
// CUpointer_attribute
constexpr int pointerMemoryType = 2;
constexpr int pointerIsManaged = 8;
constexpr int pointerDeviceOrdinal = 9;
constexpr int pointerRangeStart = 11;
constexpr int pointerRangeSize = 12;
// CUmemorytype
constexpr unsigned memoryTypeHost = 1;
constexpr unsigned memoryTypeDevice = 2;
// CUlaunchAttributeID
constexpr int attributeProgrammaticStreamSerialization = 6;
} // namespace cuda

struct CUlaunchAttribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    int programmaticStreamSerializationAllowed;
  } value;
};

struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned numAttrs;
};

/// The driver's functions; tests fill in one of their own.
struct CudaDriver {
#define MLAFIX_CUDA_FUNCTION(NAME, VERSION, NEED, ...)                         \
  CUresult (*NAME)(__VA_ARGS__) = nullptr;
#include "CudaDriver.def"
};

/// The driver, loaded and initialised, or NO_DRIVER with the reason.
mlafix_status getCudaDriver(const CudaDriver *&driver);

/// The driver if the process has it loaded already, else null: without it no
/// pointer can be a device pointer. Never loads anything.
const CudaDriver *getCudaDriverIfLoaded();

/// From now on this table is the driver (null: the machine's own again).
void setCudaDriverForTesting(const CudaDriver *driver);

/// Records "FUNCTION returned CUDA_ERROR_X (text)" as a DRIVER_ERROR (or
/// OUT_OF_MEMORY).
mlafix_status cudaError(const CudaDriver &driver, const char *function,
                        CUresult result);

#define MLAFIX_CUDA_TRY(DRIVER, FUNCTION, ...)                                 \
  do {                                                                         \
    CUresult mlafixCudaResult = (DRIVER).FUNCTION(__VA_ARGS__);                \
    if (mlafixCudaResult != cuda::success)                                     \
      return cudaError(DRIVER, #FUNCTION, mlafixCudaResult);                   \
  } while (false)

} // namespace mlafix::runtime

#endif // MLAFIX_RUNTIME_CUDADRIVER_H
