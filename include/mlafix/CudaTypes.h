//===- CudaTypes.h - Types and values of the CUDA driver --------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The types and constants of the CUDA driver that the runtime and the tools
// use, so that no CUDA header is needed. The types have the driver's own names.
// Types and values are part of the driver's ABI and never change.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_CUDATYPES_H
#define MLAFIX_CUDATYPES_H

namespace mlafix::driver {

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
// values of CUresult
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
constexpr CUresult errorInvalidHandle = 400;
constexpr CUresult errorContextIsDestroyed = 709;
// values of CUdevice_attribute
constexpr int attributeMultiprocessorCount = 16;
constexpr int attributeMemoryClockRate = 36; // in kHz
constexpr int attributeMemoryBusWidth = 37;  // in bits
constexpr int attributeL2CacheSize = 38;
constexpr int attributeComputeCapabilityMajor = 75;
constexpr int attributeComputeCapabilityMinor = 76;
// values of CUfunction_attribute
constexpr int attributeMaxThreadsPerBlock = 0;
// values of CUstreamCaptureMode
constexpr int captureModeRelaxed = 2;
// values of CUstreamCaptureStatus
constexpr int captureStatusNone = 0;
constexpr int captureStatusActive = 1;
// values of CUevent_flags
constexpr unsigned eventDisableTiming = 2;
// values of CUpointer_attribute
constexpr int pointerMemoryType = 2;
constexpr int pointerIsManaged = 8;
constexpr int pointerDeviceOrdinal = 9;
constexpr int pointerRangeStart = 11;
constexpr int pointerRangeSize = 12;
// values of CUmemorytype
constexpr unsigned memoryTypeHost = 1;
constexpr unsigned memoryTypeDevice = 2;
// values of CUlaunchAttributeID
constexpr int attributeProgrammaticStreamSerialization = 6;
// CU_STREAM_PER_THREAD, which denotes a different stream in each thread
inline const CUstream streamPerThread = reinterpret_cast<CUstream>(2);
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

} // namespace mlafix::driver

#endif // MLAFIX_CUDATYPES_H
