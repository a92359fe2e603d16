//===- CudaDevice.cpp - CUDA driver behind the Device interface -----------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// Opens libcuda.so.1 at run time and declares the driver's types, so building
// needs no CUDA toolkit. This file does not use the runtime's table of driver
// functions, because the tests that use this file test that table.
//
//===----------------------------------------------------------------------===//

#include "CudaDriver.h"
#include "Device.h"

#include <dlfcn.h>

#include <stdexcept>

using namespace support;

void *support::findDriverFunction(const char *Name) {
  void *Library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!Library)
    throw std::runtime_error("expected a CUDA driver, got no libcuda.so.1");
  void *Function = dlsym(Library, Name);
  if (!Function)
    throw std::runtime_error(std::string("expected ") + Name +
                             " in libcuda.so.1");
  return Function;
}

namespace {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
struct CUctx_st;
struct CUstream_st;
struct CUgraph_st;
struct CUgraphExec_st;
using CUcontext = CUctx_st *;
using CUstream = CUstream_st *;
using CUgraph = CUgraph_st *;
using CUgraphExec = CUgraphExec_st *;

/// The driver functions in use, by the names that libcuda exports.
struct Driver {
#define MLAFIX_DRIVER_FUNCTIONS(X)                                             \
  X(cuInit, (unsigned))                                                        \
  X(cuDeviceGet, (CUdevice *, int))                                            \
  X(cuDeviceGetName, (char *, int, CUdevice))                                  \
  X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                         \
  X(cuCtxSetCurrent, (CUcontext))                                              \
  X(cuGetErrorName, (CUresult, const char **))                                 \
  X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                    \
  X(cuMemFree_v2, (CUdeviceptr))                                               \
  X(cuMemGetInfo_v2, (size_t *, size_t *))                                     \
  X(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))                      \
  X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                            \
  X(cuMemcpyDtoD_v2, (CUdeviceptr, CUdeviceptr, size_t))                       \
  X(cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t))                       \
  X(cuCtxSynchronize, (void))                                                  \
  X(cuStreamCreate, (CUstream *, unsigned))                                    \
  X(cuStreamSynchronize, (CUstream))                                           \
  X(cuStreamBeginCapture_v2, (CUstream, int))                                  \
  X(cuStreamEndCapture, (CUstream, CUgraph *))                                 \
  X(cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long)) \
  X(cuGraphLaunch, (CUgraphExec, CUstream))                                    \
  X(cuGraphExecDestroy, (CUgraphExec))                                         \
  X(cuGraphDestroy, (CUgraph))
  MLAFIX_DRIVER_FUNCTIONS(SUPPORT_DRIVER_MEMBER)

  Driver() {
    MLAFIX_DRIVER_FUNCTIONS(SUPPORT_DRIVER_LOAD)
    check(cuInit(0), "cuInit");
  }

  void check(CUresult Result, const char *Call) const {
    if (!Result)
      return;
    const char *Name = nullptr;
    cuGetErrorName(Result, &Name);
    throw std::runtime_error(std::string(Call) + " failed: " +
                             (Name ? Name : std::to_string(Result).c_str()));
  }
};

#define CHECKED(CALL, ARGS) Cuda.check(Cuda.CALL ARGS, #CALL)

CUdeviceptr address(const void *Data) {
  return static_cast<CUdeviceptr>(reinterpret_cast<uintptr_t>(Data));
}

class CudaGraph : public Graph {
public:
  CudaGraph(const Driver &Cuda, CUgraph Source, CUstream Stream)
      : Cuda(Cuda), Source(Source), Stream(Stream) {
    CHECKED(cuGraphInstantiateWithFlags, (&Executable, Source, 0));
  }
  ~CudaGraph() override {
    Cuda.cuGraphExecDestroy(Executable);
    Cuda.cuGraphDestroy(Source);
  }
  void replay() override {
    CHECKED(cuGraphLaunch, (Executable, Stream));
    CHECKED(cuStreamSynchronize, (Stream));
  }

private:
  const Driver &Cuda;
  CUgraph Source;
  CUgraphExec Executable = nullptr;
  CUstream Stream;
};

class CudaDevice : public Device {
public:
  explicit CudaDevice(int Ordinal) : Ordinal(Ordinal) {
    CUdevice Handle;
    CHECKED(cuDeviceGet, (&Handle, Ordinal));
    char Text[128] = "";
    CHECKED(cuDeviceGetName, (Text, sizeof(Text), Handle));
    Name = Text;
    CUcontext Context;
    CHECKED(cuDevicePrimaryCtxRetain, (&Context, Handle));
    CHECKED(cuCtxSetCurrent, (Context));
    // 1 is CU_STREAM_NON_BLOCKING: the stream does not wait for the legacy
    // default stream.
    CHECKED(cuStreamCreate, (&Stream, 1));
  }

  mlafix_device handle() const override { return {MLAFIX_CUDA, Ordinal}; }
  std::string name() const override { return Name; }

  void *allocate(size_t Bytes) override {
    CUdeviceptr Data = 0;
    CHECKED(cuMemAlloc_v2, (&Data, Bytes ? Bytes : 1));
    return reinterpret_cast<void *>(static_cast<uintptr_t>(Data));
  }
  void free(void *Data) noexcept override { Cuda.cuMemFree_v2(address(Data)); }
  void upload(void *To, const void *From, size_t Bytes) override {
    if (Bytes)
      CHECKED(cuMemcpyHtoD_v2, (address(To), From, Bytes));
    // A copy from pageable memory may return before the data has arrived, and
    // launches on another stream would not wait for it.
    CHECKED(cuCtxSynchronize, ());
  }
  void download(void *To, const void *From, size_t Bytes) override {
    synchronize();
    if (Bytes)
      CHECKED(cuMemcpyDtoH_v2, (To, address(From), Bytes));
  }
  void copyOnDevice(void *To, const void *From, size_t Bytes) override {
    if (Bytes)
      CHECKED(cuMemcpyDtoD_v2, (address(To), address(From), Bytes));
    CHECKED(cuCtxSynchronize, ());
  }
  void fill(void *To, unsigned char Byte, size_t Bytes) override {
    if (Bytes)
      CHECKED(cuMemsetD8_v2, (address(To), Byte, Bytes));
    CHECKED(cuCtxSynchronize, ());
  }
  size_t freeBytes() const override {
    size_t Free = 0, Total = 0;
    CHECKED(cuMemGetInfo_v2, (&Free, &Total));
    return Free;
  }
  void *stream() const override { return Stream; }
  void synchronize() override { CHECKED(cuStreamSynchronize, (Stream)); }

  std::unique_ptr<Graph>
  capture(const std::function<void()> &Launches) override {
    // 0 is the strictest mode: a call that could wait is an error.
    CHECKED(cuStreamBeginCapture_v2, (Stream, 0));
    CUgraph Source = nullptr;
    try {
      Launches();
    } catch (...) {
      Cuda.cuStreamEndCapture(Stream, &Source);
      throw;
    }
    CHECKED(cuStreamEndCapture, (Stream, &Source));
    return std::make_unique<CudaGraph>(Cuda, Source, Stream);
  }

private:
  Driver Cuda;
  int Ordinal;
  std::string Name;
  CUstream Stream = nullptr;
};

} // namespace

std::unique_ptr<Device> support::openCudaDevice(int Ordinal) {
  return std::make_unique<CudaDevice>(Ordinal);
}
