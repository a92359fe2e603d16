/*===- Driver.h - the CUDA driver functions of cuda_ipc -----------*- C -*-===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef CUDA_IPC_DRIVER_H
#define CUDA_IPC_DRIVER_H

#include <stddef.h>
#include <stdio.h>

typedef int CUresult;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef unsigned long long CUdeviceptr;
typedef struct {
  char reserved[64];
} CUipcMemHandle;

/* Flag of IpcOpenMemHandle: CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS. */
enum { IPC_ENABLE_PEER_ACCESS = 1 };

struct Driver {
  CUresult (*GetErrorName)(CUresult, const char **);
  CUresult (*DeviceGetCount)(int *);
  CUresult (*DeviceGet)(CUdevice *, int);
  CUresult (*DeviceCanAccessPeer)(int *, CUdevice, CUdevice);
  CUresult (*DevicePrimaryCtxRetain)(CUcontext *, CUdevice);
  CUresult (*CtxSetCurrent)(CUcontext);
  CUresult (*CtxSynchronize)(void);
  CUresult (*MemAlloc)(CUdeviceptr *, size_t);
  CUresult (*MemFree)(CUdeviceptr);
  CUresult (*MemHostAlloc)(void **, size_t, unsigned);
  CUresult (*MemsetD8)(CUdeviceptr, unsigned char, size_t);
  CUresult (*MemcpyHtoD)(CUdeviceptr, const void *, size_t);
  CUresult (*MemcpyDtoH)(void *, CUdeviceptr, size_t);
  CUresult (*IpcGetMemHandle)(CUipcMemHandle *, CUdeviceptr);
  CUresult (*IpcOpenMemHandle)(CUdeviceptr *, CUipcMemHandle, unsigned);
  CUresult (*IpcCloseMemHandle)(CUdeviceptr);
};

/* Makes the context of device `Ordinal` current. Ends the process with a
   message if this device cannot address the memory of the first `Devices`
   devices. */
const struct Driver *openDriver(int Ordinal, int Devices);

/* Ends the process with the name of the error if `Result` is one. */
void checkDriver(CUresult Result, const char *Call);
#define CHECK(CALL) checkDriver(CALL, #CALL)

#endif /* CUDA_IPC_DRIVER_H */
