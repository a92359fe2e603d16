/*===- Driver.c - the CUDA driver functions of cuda_ipc -------------------===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include "Driver.h"

#include "mlafix/runtime.h"

#include <stdlib.h>
#include <string.h>

static struct Driver Cuda;

void checkDriver(CUresult Result, const char *Call) {
  const char *Name = "an unknown error";
  if (Result == 0)
    return;
  Cuda.GetErrorName(Result, &Name);
  fprintf(stderr, "cuda_ipc: %s: %s\n", Call, Name);
  exit(1);
}

/* Stores the driver function `Name` in `Slot`. `Version` is the first version
   of CUDA in which the function has the parameters that this program passes. */
static void load(const char *Name, int Version, void *Slot) {
  mlafix_cuda_entry Entry;
  if (mlafix_cuda_function(Name, Version, &Entry) != MLAFIX_OK) {
    fprintf(stderr, "cuda_ipc: %s\n", mlafix_last_error());
    exit(1);
  }
  memcpy(Slot, &Entry, sizeof(Entry));
}

static void loadAll(void) {
  load("cuGetErrorName", 6000, &Cuda.GetErrorName);
  load("cuDeviceGetCount", 2000, &Cuda.DeviceGetCount);
  load("cuDeviceGet", 2000, &Cuda.DeviceGet);
  load("cuDeviceCanAccessPeer", 4000, &Cuda.DeviceCanAccessPeer);
  load("cuDevicePrimaryCtxRetain", 7000, &Cuda.DevicePrimaryCtxRetain);
  load("cuCtxSetCurrent", 4000, &Cuda.CtxSetCurrent);
  load("cuCtxSynchronize", 2000, &Cuda.CtxSynchronize);
  load("cuMemAlloc", 3020, &Cuda.MemAlloc);
  load("cuMemFree", 3020, &Cuda.MemFree);
  load("cuMemHostAlloc", 2020, &Cuda.MemHostAlloc);
  load("cuMemsetD8", 3020, &Cuda.MemsetD8);
  load("cuMemcpyHtoD", 3020, &Cuda.MemcpyHtoD);
  load("cuMemcpyDtoH", 3020, &Cuda.MemcpyDtoH);
  load("cuIpcGetMemHandle", 4010, &Cuda.IpcGetMemHandle);
  load("cuIpcOpenMemHandle", 11000, &Cuda.IpcOpenMemHandle);
  load("cuIpcCloseMemHandle", 4010, &Cuda.IpcCloseMemHandle);
}

const struct Driver *openDriver(int Ordinal, int Devices) {
  CUdevice Own, Other;
  CUcontext Context;
  int Count, Can;
  loadAll();
  CHECK(Cuda.DeviceGetCount(&Count));
  if (Count < Devices) {
    fprintf(stderr, "cuda_ipc: expected %d GPUs, got %d\n", Devices, Count);
    exit(1);
  }
  CHECK(Cuda.DeviceGet(&Own, Ordinal));
  for (int I = 0; I < Devices; ++I) {
    CHECK(Cuda.DeviceGet(&Other, I));
    CHECK(Cuda.DeviceCanAccessPeer(&Can, Own, Other));
    if (I == Ordinal || Can)
      continue;
    fprintf(stderr,
            "cuda_ipc: expected GPUs that address each other's memory, got "
            "cuda:%d, which does not address that of cuda:%d\n",
            Ordinal, I);
    exit(1);
  }
  CHECK(Cuda.DevicePrimaryCtxRetain(&Context, Own));
  CHECK(Cuda.CtxSetCurrent(Context));
  return &Cuda;
}
